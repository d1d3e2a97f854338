"""Output where the terminal, or the file, has no more than ASCII: a character that is like it in the place of each."""

from __future__ import annotations

import codecs
import io
import sys

NAME = "headrace-lookalike"
# One for one, so that no line gets longer than it was made.
LOOKALIKES = {
    **dict(zip("─━│┃├└┌┐┘┤┬┴┼╸╺", "--|||`+++|+++--", strict=True)),
    **dict(zip("▁▂▃▄▅▆▇█", "_.-=+*%#", strict=True)),
    **dict(zip("▏▎▍▌▋▊▉", "---####", strict=True)),
    **dict(zip("←→…±×·“”‘’", "<>.~x.\"\"''", strict=True)),
}
BRAILLE = range(0x2800, 0x2900)


def allow_ascii() -> None:
    """No output fails for its characters. Python says what the streams take: UTF-8 in nearly every locale, C too."""
    codecs.register_error(NAME, _lookalikes)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not takes_all(stream):
            stream.reconfigure(errors=NAME)


def takes_all(stream: object) -> bool:
    """Whether there is nothing that it cannot write."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return str(encoding).lower().startswith("utf")


def _lookalikes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_lookalike, error.object[error.start : error.end])), error.end


def _lookalike(char: str) -> str:
    return "*" if ord(char) in BRAILLE else LOOKALIKES.get(char, "?")
