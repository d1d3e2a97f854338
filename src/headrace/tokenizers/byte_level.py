"""`bytes`: no vocabulary, each byte is its own id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.tokenizers.base import Engine, Ids, Special, Tokenizer

EOS, BOS, PAD = 256, 257, 258


class ByteEngine:
    name = "bytes"

    def encode(self, texts: Sequence[bytes]) -> list[Ids]:
        return [np.frombuffer(text, np.uint8).astype(np.uint32) for text in texts]


class ByteTokenizer(Tokenizer):
    kind = "bytes"

    def __init__(self) -> None:
        super().__init__("bytes", (), PAD + 1, Special(eos=EOS, bos=BOS, pad=PAD))

    def reference(self) -> Engine:
        return ByteEngine()

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        names = {EOS: b"<|eos|>", BOS: b"<|bos|>", PAD: b"<|pad|>"}
        return b"".join(names.get(int(i)) or bytes((int(i),)) for i in ids).decode("utf-8", "replace")

    def token_id(self, token: str) -> int | None:
        return {"<|eos|>": EOS, "<|bos|>": BOS, "<|pad|>": PAD}.get(token)

    @property
    def sha256(self) -> str:
        return "0" * 64  # no files: nothing that could differ
