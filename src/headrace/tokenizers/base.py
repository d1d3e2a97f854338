"""What every kind of tokenizer is: files, ids, a reference engine, and perhaps faster ones."""

from __future__ import annotations

import hashlib
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from headrace.errors import TokenizerError

Ids = NDArray[np.uint32]

DESCRIPTOR = "headrace-tokenizer.json"
FAST_ENGINES = ("gigatoken", "fastokens")  # in the order in which they are tried


class Engine(Protocol):
    """Turns documents into ids: one row per document.

    Rows and not one flat array, so that joining them, adding the control tokens between them and narrowing them to
    the dataset's type is a single pass over the memory.
    """

    name: str

    def encode(self, texts: Sequence[bytes]) -> list[Ids]: ...


class Unsupported(Exception):
    """A fast engine cannot load this tokenizer; the message says why."""


class Special(msgspec.Struct, frozen=True, omit_defaults=True):
    """The ids that the packer adds; None where the tokenizer has no such token."""

    eos: int | None = None
    bos: int | None = None
    pad: int | None = None


class Descriptor(msgspec.Struct, frozen=True, omit_defaults=True):
    """How to load a saved tokenizer again, beside its files."""

    kind: str
    name: str
    file: str
    special: Special
    vocab_size: int
    pattern: str | None = None  # tiktoken rank files do not carry their split pattern


class Tokenizer(ABC):
    """One kind per file: hf, sentencepiece, tiktoken, tekken, bytes."""

    kind: ClassVar[str]

    def __init__(self, name: str, files: Sequence[Path], vocab_size: int, special: Special) -> None:
        self.name = name
        self.files = tuple(files)
        self.vocab_size = vocab_size
        self.special = special
        self.engines: dict[str, Engine] = {}  # those loaded so far; see parity.open_engine

    @abstractmethod
    def reference(self) -> Engine:
        """The library that defines this tokenizer."""

    @abstractmethod
    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        """Text of these ids, control tokens included; broken characters at the ends become U+FFFD."""

    def fast(self, engine: str) -> Engine:
        """The named fast engine, or Unsupported."""
        raise Unsupported(f"{engine} does not read {self.kind} tokenizers")

    def control_texts(self) -> list[str]:
        """Spellings that a document may contain but that must never become the control token."""
        return []

    def token_id(self, token: str) -> int | None:
        """The id of a token by its spelling, for --eos-token."""
        return None

    @property
    def sha256(self) -> str:
        digest = hashlib.sha256()
        for file in self.files:
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def with_eos(self, token: str) -> Tokenizer:
        """The same tokenizer with another end-of-document token."""
        eos = self.token_id(token)
        if eos is None:
            raise TokenizerError(
                f"--eos-token {token!r}: the tokenizer {self.name} has no such token. "
                f"Run 'headrace tokenizer check {self.name}' to see its control tokens."
            )
        self.special = msgspec.structs.replace(self.special, eos=eos)
        return self

    def descriptor(self) -> Descriptor:
        file = self.files[0].name if self.files else ""
        return Descriptor(self.kind, self.name, file, self.special, self.vocab_size)

    def save(self, folder: Path) -> None:
        """Copy its files, so that a dataset is self-contained."""
        folder.mkdir(parents=True, exist_ok=True)
        for file in self.files:
            if file.parent != folder:
                shutil.copyfile(file, folder / file.name)
        data = msgspec.json.format(msgspec.json.encode(self.descriptor()), indent=2)
        (folder / DESCRIPTOR).write_bytes(data + b"\n")
