"""What a command measures or learns at the moment: a line that changes on a terminal, one line elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from headrace.cli.output import can_be_live, err_console
from headrace.cli.stopping import NOTHING_WRITTEN, stopping


@contextlib.contextmanager
def measuring() -> Iterator[Callable[[str], None]]:
    """Takes what is being measured, and says it; whoever stops it finds a clean line and what became of it."""
    with stopping(NOTHING_WRITTEN), told("Measuring ...") as tell:
        yield tell


@contextlib.contextmanager
def told(elsewhere: str) -> Iterator[Callable[[str], None]]:
    """Where no line can change, `elsewhere` is said once. No thread redraws the line: it would be measured too."""
    console = err_console()
    if not can_be_live(console):
        console.print(elsewhere)
        yield lambda text: None
        return

    def tell(text: str) -> None:
        console.file.write(f"\r\x1b[2K{text} ..."[: console.width + 5])
        console.file.flush()

    try:
        yield tell
    finally:
        console.file.write("\r\x1b[2K")
        console.file.flush()
