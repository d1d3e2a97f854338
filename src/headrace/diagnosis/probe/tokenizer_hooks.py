"""Calls of tokenizers, with the texts in each, whichever library they are of."""

from __future__ import annotations

import ctypes
import functools
import gc
import sys
from collections.abc import Callable, Iterable
from threading import get_ident
from typing import Any

from .batches import remember_padding  # noqa: TID252
from .recording import Recording  # noqa: TID252
from .wrapping import MARK, beside  # noqa: TID252

ENCODE = ("encode", "encode_batch", "encode_batch_fast")
TIKTOKEN = ("encode", "encode_ordinary", "encode_batch", "encode_ordinary_batch", "encode_to_numpy")
SENTENCEPIECE = (
    "Encode", "encode", "EncodeAsIds", "encode_as_ids", "EncodeAsPieces", "encode_as_pieces", "EncodeAsNumpy",
    "encode_as_numpy", "ParallelEncode", "parallel_encode",
)  # fmt: skip
GIGATOKEN = ("encode", "encode_batch", "encode_batch_list", "encode_batch_padded", "encode_files")
FASTOKENS = ("encode", "encode_batch", "encode_batch_flat", "encode_ordinary")


def texts_in(args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    """Of a call: a list has as many texts as entries; everything else is one."""
    texts = args[0] if args else next(iter(kwargs.values()), None)
    return float(len(texts)) if isinstance(texts, (list, tuple)) else 1.0


def tokenizing(recording: Recording, function: Callable[..., Any], what: str) -> Callable[..., Any]:
    clock = recording.clock

    @functools.wraps(function)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if get_ident() != clock.thread:
            return beside(recording, function, "tokenization", (self, *args), kwargs)
        if clock.stack[-1] == "tokenization":  # a library on top of another
            return function(self, *args, **kwargs)
        before = clock.enter("tokenization")
        try:
            return function(self, *args, **kwargs)
        finally:
            frame = sys._getframe().f_back
            recording.note("tokenization", what, clock.leave(before), frame, texts_in(args, kwargs))
            if kwargs.get("padding"):
                remember_padding(recording, frame)

    setattr(call, MARK, True)
    return call


def watch(recording: Recording, cls: Any, library: str, names: Iterable[str]) -> None:
    for name in names:
        function = getattr(cls, name, None)
        if function is None or hasattr(function, MARK):
            continue
        timed = tokenizing(recording, function, f"{library}: {name}")
        try:
            setattr(cls, name, timed)
        except TypeError:  # a type written in Rust does not let itself be changed
            replace_in_native_type(cls, name, timed)


def replace_in_native_type(cls: Any, name: str, function: Callable[..., Any]) -> None:
    """Through the dictionary behind the type's read-only view; the type's caches are told."""
    (attributes,) = (found for found in gc.get_referents(cls.__dict__) if isinstance(found, dict))
    attributes[name] = function
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))


def watch_tokenizers(module: Any, recording: Recording) -> None:
    watch(recording, module.Tokenizer, "tokenizers", ENCODE)


def watch_transformers(module: Any, recording: Recording) -> None:
    watch(recording, module.PreTrainedTokenizerBase, "transformers", ("__call__", "encode"))


def watch_sentencepiece(module: Any, recording: Recording) -> None:
    watch(recording, module.SentencePieceProcessor, "sentencepiece", SENTENCEPIECE)


def watch_tiktoken(module: Any, recording: Recording) -> None:
    watch(recording, module.Encoding, "tiktoken", TIKTOKEN)


def watch_gigatoken(module: Any, recording: Recording) -> None:
    watch(recording, module.Tokenizer, "gigatoken", GIGATOKEN)


def watch_fastokens(module: Any, recording: Recording) -> None:
    watch(recording, module.Tokenizer, "fastokens", FASTOKENS)


HOOKS = {
    "tokenizers": watch_tokenizers,
    "transformers.tokenization_utils_base": watch_transformers,
    "sentencepiece": watch_sentencepiece,
    "tiktoken.core": watch_tiktoken,
    "gigatoken._tokenizer": watch_gigatoken,
    "fastokens": watch_fastokens,
}
