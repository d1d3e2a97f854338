"""tiktoken: rank files (`.tiktoken`) and the encodings known by name."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headrace.errors import TokenizerError
from headrace.tokenizers import fast
from headrace.tokenizers.base import Descriptor, Engine, Ids, Special, Tokenizer

END = "<|endoftext|>"

R50K = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
CL100K = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"""
    r"""\s+(?!\S)|\s"""
)
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = "|".join(
    (
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_SUFFIX}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_SUFFIX}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)


class Pattern(NamedTuple):
    """What a rank file does not carry."""

    regex: str
    scheme: str | None  # gigatoken's name for it
    specials: dict[str, int]


PATTERNS = {
    "r50k_base": Pattern(R50K, "gpt2", {END: 50256}),
    "p50k_base": Pattern(R50K, "gpt2", {END: 50256}),
    "cl100k_base": Pattern(
        CL100K,
        "gpt4",
        {
            END: 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "o200k_base": Pattern(O200K, "o200k", {END: 199999, "<|endofprompt|>": 200018}),
}
ALIASES = {
    "gpt2": "r50k_base",
    "cl100k": "cl100k_base",
    "o200k": "o200k_base",
    "r50k": "r50k_base",
    "p50k": "p50k_base",
}


class TiktokenTokenizer(Tokenizer):
    kind = "tiktoken"

    def __init__(self, path: Path, name: str, pattern: str, special: Special | None = None) -> None:
        self.path = path
        self.pattern = pattern
        self.ranks = read_ranks(path)
        self._specials = _specials_for(pattern, len(self.ranks))
        size = max(max(self.ranks.values()), *self._specials.values()) + 1
        super().__init__(name, (path,), size, special or Special(eos=self._specials.get(END)))

    @cached_property
    def _encoding(self) -> Any:
        """The library's own object; a worker builds it only when it has a document to check."""
        import tiktoken

        regex = PATTERNS[self.pattern].regex
        return tiktoken.Encoding(self.name, pat_str=regex, mergeable_ranks=self.ranks, special_tokens=self._specials)

    @classmethod
    def from_descriptor(cls, folder: Path, descriptor: Descriptor) -> TiktokenTokenizer:
        return cls(folder / descriptor.file, descriptor.name, descriptor.pattern or "", descriptor.special)

    def descriptor(self) -> Descriptor:
        return Descriptor(self.kind, self.name, self.path.name, self.special, self.vocab_size, self.pattern)

    def reference(self) -> Engine:
        return TiktokenEngine(self._encoding)

    def fast(self, engine: str) -> Engine:
        known = PATTERNS[self.pattern]
        return fast.from_ranks(engine, self.path, pattern=known.regex, scheme=known.scheme)

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        return str(self._encoding.decode([int(i) for i in ids]))

    def control_texts(self) -> list[str]:
        return list(self._specials)

    def token_id(self, token: str) -> int | None:
        return self._specials.get(token, self.ranks.get(token.encode()))


class TiktokenEngine:
    name = "tiktoken"

    def __init__(self, encoding: Any, id_offset: int = 0) -> None:
        self._encoding = encoding
        self._id_offset = id_offset

    def encode(self, texts: Sequence[bytes]) -> list[Ids]:
        offset = np.uint32(self._id_offset)
        return [np.asarray(self._encode_one(text.decode()), np.uint32) + offset for text in texts]

    def _encode_one(self, text: str) -> Any:
        try:
            return self._encoding.encode_ordinary(text)
        except BaseException as error:
            # tiktoken's regex overflows its stack on a million spaces and panics: a BaseException of its own.
            if type(error).__name__ != "PanicException":
                raise
            raise ReferenceFailed(f"tiktoken cannot encode this text of {len(text):,} characters: {error}") from None


class ReferenceFailed(Exception):
    """The reference itself gave up on a text, so nothing can be compared with it."""


def read_ranks(path: Path) -> dict[bytes, int]:
    """Token bytes to rank, from lines of `base64 rank`."""
    ranks = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise TokenizerError(
                f"{path} line {number} is not 'BASE64 RANK', so it is no tiktoken rank file. "
                f"Pass a .tiktoken file or one of: {', '.join(PATTERNS)}."
            ) from error
    if len(ranks) < 256:
        raise TokenizerError(f"{path} holds {len(ranks)} tokens; a tiktoken rank file holds at least the 256 bytes.")
    return ranks


def fetch_by_name(name: str, folder: Path) -> Path:
    """Write the ranks of a known encoding into `folder`, from tiktoken's cache or its download."""
    from tiktoken_ext.openai_public import ENCODING_CONSTRUCTORS

    try:
        ranks = ENCODING_CONSTRUCTORS[name]()["mergeable_ranks"]
    except Exception as error:
        raise TokenizerError(
            f"The tokenizer {name} could not be fetched: {error}. Check the network, set TIKTOKEN_CACHE_DIR to a "
            f"folder that holds it, or pass the path of a {name}.tiktoken file."
        ) from error
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.tiktoken"
    write_ranks(path, ranks)
    return path


def write_ranks(path: Path, ranks: dict[bytes, int]) -> None:
    lines = (b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in sorted(ranks.items(), key=lambda r: r[1]))
    path.write_bytes(b"".join(lines))


def pattern_for_file(path: Path, asked: str | None) -> str:
    """The split pattern of a rank file: named by the user, else by the file's name, else by its size."""
    if asked is not None:
        name = ALIASES.get(asked, asked)
        if name in PATTERNS:
            return name
        raise TokenizerError(f"{asked!r} is no known split pattern. Known: {', '.join([*PATTERNS, *ALIASES])}.")
    if path.name.removesuffix(".tiktoken") in PATTERNS:
        return path.name.removesuffix(".tiktoken")
    raise TokenizerError(
        f"{path} does not carry its split pattern, and its name is none of {', '.join(PATTERNS)}. "
        f"Name it after a colon, for example: --tokenizer '{path.name}:cl100k_base'."
    )


def _specials_for(pattern: str, size: int) -> dict[str, int]:
    """The published control tokens, or for someone else's ranks one <|endoftext|> behind them."""
    specials = PATTERNS[pattern].specials
    published = {"r50k_base": 50256, "p50k_base": 50280, "cl100k_base": 100256, "o200k_base": 199998}[pattern]
    return specials if size == published else {END: size}
