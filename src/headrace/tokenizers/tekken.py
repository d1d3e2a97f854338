"""Mistral's `tekken.json`: tiktoken ranks behind a block of control tokens."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from numpy.typing import NDArray

from headrace.errors import TokenizerError
from headrace.tokenizers import fast
from headrace.tokenizers.base import Descriptor, Engine, Special, Tokenizer
from headrace.tokenizers.tiktoken_ranks import TiktokenEngine, write_ranks

# Files before the format listed its control tokens itself all begin with these.
FIRST_CONTROLS = ("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]",
                  "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>")  # fmt: skip


class Config(msgspec.Struct):
    pattern: str
    default_vocab_size: int
    default_num_special_tokens: int


class Token(msgspec.Struct):
    rank: int
    token_bytes: str


class Control(msgspec.Struct):
    rank: int
    token_str: str


class TekkenFile(msgspec.Struct):
    config: Config
    vocab: list[Token]
    special_tokens: list[Control] | None = None


class TekkenTokenizer(Tokenizer):
    kind = "tekken"

    def __init__(self, path: Path, name: str, special: Special | None = None) -> None:
        self.path = path
        self._file = read_tekken(path)
        self._offset = self._file.config.default_num_special_tokens
        self._controls = _controls(self._file)
        ordinary = self._file.vocab[: self._file.config.default_vocab_size - self._offset]
        self.ranks = {base64.b64decode(token.token_bytes): token.rank for token in ordinary}
        found = Special(*(self._controls.get(text) for text in ("</s>", "<s>", "<pad>")))
        super().__init__(name, (path,), self._file.config.default_vocab_size, special or found)
        self._encoding = self._tiktoken()

    @classmethod
    def from_descriptor(cls, folder: Path, descriptor: Descriptor) -> TekkenTokenizer:
        return cls(folder / descriptor.file, descriptor.name, descriptor.special)

    def reference(self) -> Engine:
        return TiktokenEngine(self._encoding, self._offset)

    def fast(self, engine: str) -> Engine:
        with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
            ranks = Path(folder) / "tekken.tiktoken"
            write_ranks(ranks, self.ranks)
            pattern = self._file.config.pattern
            return fast.from_ranks(engine, ranks, pattern=pattern, scheme=None, id_offset=self._offset)

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        spelling = {i: text for text, i in self._controls.items()}
        parts = []
        for i in map(int, ids):
            control = spelling.get(i, f"<SPECIAL_{i}>").encode()
            parts.append(control if i < self._offset else self._encoding.decode_single_token_bytes(i - self._offset))
        return b"".join(parts).decode("utf-8", "replace")

    def control_texts(self) -> list[str]:
        return list(self._controls)

    def token_id(self, token: str) -> int | None:
        return self._controls.get(token)

    def _tiktoken(self) -> Any:
        import tiktoken

        regex = self._file.config.pattern
        return tiktoken.Encoding(self.name, pat_str=regex, mergeable_ranks=self.ranks, special_tokens={})


def read_tekken(path: Path) -> TekkenFile:
    try:
        return msgspec.json.decode(path.read_bytes(), type=TekkenFile)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TokenizerError(
            f"{path} is not a tekken.json: {error}. Pass the tekken.json that the Mistral model came with."
        ) from error


def _controls(file: TekkenFile) -> dict[str, int]:
    if file.special_tokens:
        return {control.token_str: control.rank for control in file.special_tokens}
    return {text: i for i, text in enumerate(FIRST_CONTROLS)}
