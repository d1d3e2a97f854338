"""Hugging Face `tokenizer.json`, alone or in a folder with its tokenizer_config.json."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from headrace.errors import TokenizerError
from headrace.tokenizers import fast
from headrace.tokenizers.base import Descriptor, Engine, Ids, Special, Tokenizer

# Without a tokenizer_config.json the usual spellings are looked for, in this order.
USUAL = {
    "eos": ("<|endoftext|>", "</s>", "<|end_of_text|>", "<｜end▁of▁sentence｜>", "<eos>", "<|eos|>", "[SEP]"),
    "bos": ("<|bos|>", "<s>", "<|begin_of_text|>", "<｜begin▁of▁sentence｜>", "<bos>", "<|startoftext|>", "[CLS]"),
    "pad": ("<|pad|>", "<pad>", "<｜▁pad▁｜>", "[PAD]", "<|finetune_right_pad_id|>"),
}


class HFTokenizer(Tokenizer):
    kind = "hf"

    def __init__(self, path: Path, name: str, saved: Descriptor | None = None) -> None:
        self.path = path
        self._data = _read_json(path)
        siblings = [path.parent / extra for extra in ("tokenizer_config.json", "special_tokens_map.json")]
        files = [path, *(file for file in siblings if file.is_file())]
        if saved is not None:
            super().__init__(name, files, saved.vocab_size, saved.special)
            return
        vocab = self._tokenizer.get_vocab(with_added_tokens=True)
        super().__init__(name, files, max(vocab.values(), default=-1) + 1, _find_special(files[1:], vocab))

    @classmethod
    def from_descriptor(cls, folder: Path, descriptor: Descriptor) -> HFTokenizer:
        return cls(folder / descriptor.file, descriptor.name, descriptor)

    @cached_property
    def _tokenizer(self) -> Any:
        """The library's own object (0.4 s for 129,000 ids); a worker loads it only when it has a document to check."""
        return _load_reference(self.path)

    def reference(self) -> Engine:
        return HFEngine(self._tokenizer)

    def fast(self, engine: str) -> Engine:
        return fast.from_json(engine, self._json_without_control_tokens())

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        return str(self._tokenizer.decode([int(i) for i in ids], skip_special_tokens=False))

    def control_texts(self) -> list[str]:
        return [token["content"] for token in self._data.get("added_tokens") or [] if token.get("special")]

    def token_id(self, token: str) -> int | None:
        found: int | None = self._tokenizer.token_to_id(token)
        return found

    def _json_without_control_tokens(self) -> str:
        """For engines with no switch of their own: what they do not know they cannot match."""
        added = [token for token in self._data.get("added_tokens") or [] if not token.get("special")]
        plain = {**self._data, "added_tokens": added, "truncation": None, "padding": None, "post_processor": None}
        return msgspec.json.encode(plain).decode()


class HFEngine:
    name = "tokenizers"

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode(self, texts: Sequence[bytes]) -> list[Ids]:
        rows = self._tokenizer.encode_batch_fast([text.decode() for text in texts], add_special_tokens=False)
        return [np.asarray(row.ids, np.uint32) for row in rows]


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = msgspec.json.decode(path.read_bytes())
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TokenizerError(f"{path} is not JSON ({error}), so it is no Hugging Face tokenizer. {EXPECTED}") from error
    if not isinstance(data, dict) or "model" not in data:
        raise TokenizerError(f"{path} has no 'model' entry, so it is no Hugging Face tokenizer.json. {EXPECTED}")
    return data


EXPECTED = (
    "Pass a tokenizer.json or its folder, a SentencePiece .model, a .tiktoken rank file, a tekken.json, "
    "or a name such as headrace-32k, bytes, cl100k_base."
)


def _load_reference(path: Path) -> Any:
    import tokenizers

    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:
        raise TokenizerError(f"{path} is not a tokenizer that 'tokenizers' can load: {error}. {EXPECTED}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # '<|endoftext|>' in a document is text, not the control token
    return tokenizer


def _find_special(configs: Sequence[Path], vocab: dict[str, int]) -> Special:
    named: dict[str, str] = {}
    for path in reversed(configs):
        config = msgspec.json.decode(path.read_bytes())
        for role in USUAL:
            token = config.get(f"{role}_token")
            content = token.get("content") if isinstance(token, dict) else token
            if isinstance(content, str):
                named[role] = content
    return Special(**{role: _first_id((named.get(role), *usual), vocab) for role, usual in USUAL.items()})


def _first_id(names: Sequence[str | None], vocab: dict[str, int]) -> int | None:
    return next((vocab[name] for name in names if name is not None and name in vocab), None)
