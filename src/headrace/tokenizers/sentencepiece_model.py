"""SentencePiece `.model` files, BPE and Unigram."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headrace.errors import TokenizerError
from headrace.tokenizers import fast
from headrace.tokenizers.base import Descriptor, Engine, Ids, Special, Tokenizer
from headrace.tokenizers.hf import EXPECTED
from headrace.tokenizers.sentencepiece_json import to_tokenizer_json


class SentencePieceTokenizer(Tokenizer):
    kind = "sentencepiece"

    def __init__(self, path: Path, name: str, special: Special | None = None) -> None:
        self.path = path
        self._processor = _load(path)
        super().__init__(name, (path,), self._processor.get_piece_size(), special or self._find_special())

    @classmethod
    def from_descriptor(cls, folder: Path, descriptor: Descriptor) -> SentencePieceTokenizer:
        return cls(folder / descriptor.file, descriptor.name, descriptor.special)

    def reference(self) -> Engine:
        return SentencePieceEngine(self._processor)

    def fast(self, engine: str) -> Engine:
        return fast.from_json(engine, to_tokenizer_json(self.path.read_bytes()))

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        """Control pieces show as their spelling, which the library itself leaves out."""
        processor = self._processor
        runs: list[str] = []
        plain: list[int] = []
        for i in map(int, ids):
            if processor.is_control(i):
                runs += [processor.decode(plain), processor.id_to_piece(i)]
                plain = []
            else:
                plain.append(i)
        return "".join([*runs, processor.decode(plain)])

    def control_texts(self) -> list[str]:
        processor = self._processor
        return [processor.id_to_piece(i) for i in range(self.vocab_size) if processor.is_control(i)]

    def token_id(self, token: str) -> int | None:
        found = int(self._processor.piece_to_id(token))
        return found if self._processor.id_to_piece(found) == token else None

    def _find_special(self) -> Special:
        processor = self._processor
        ids = {"eos": processor.eos_id(), "bos": processor.bos_id(), "pad": processor.pad_id()}
        return Special(**{role: found if found >= 0 else None for role, found in ids.items()})


class SentencePieceEngine:
    name = "sentencepiece"

    def __init__(self, processor: Any) -> None:
        self._processor = processor

    def encode(self, texts: Sequence[bytes]) -> list[Ids]:
        encode = self._processor.encode
        return [np.asarray(encode(text.decode(), out_type=int), np.uint32) for text in texts]


def _load(path: Path) -> Any:
    import sentencepiece

    try:
        return sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes())
    except Exception as error:
        raise TokenizerError(f"{path} is not a SentencePiece model: {error}. {EXPECTED}") from error
