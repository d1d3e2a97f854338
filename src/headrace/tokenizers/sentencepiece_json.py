"""A SentencePiece model as the contents of a tokenizer.json, which is what the fast engines read.

Control pieces are given names that no text can spell: a merge such as `<` + `s>` would otherwise build `<s>` out of
ordinary text. User-defined pieces do match in text, as they do in SentencePiece itself.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Any

import msgspec

from headrace.tokenizers.base import Unsupported

UNIGRAM, BPE = 1, 2
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


class Piece(msgspec.Struct, frozen=True):
    text: str
    score: float
    type: int


class Model(msgspec.Struct, frozen=True):
    """The parts of sentencepiece_model.proto that decide how text is split."""

    pieces: list[Piece]
    model_type: int
    byte_fallback: bool
    suffix_spaces: bool
    charsmap: bytes
    dummy_prefix: bool
    strip_spaces: bool
    escape_spaces: bool


def to_tokenizer_json(data: bytes) -> str:
    model = parse_model(data)
    if model.suffix_spaces or not model.escape_spaces:
        raise Unsupported("the model treats spaces in a way that tokenizer.json cannot say")
    if model.model_type == BPE and model.byte_fallback:
        body = _bpe(model)
    elif model.model_type == UNIGRAM:
        body = _unigram(model)
    else:
        raise Unsupported("only Unigram models, and BPE models with byte fallback, have a tokenizer.json form")
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _user_defined(model),
        "normalizer": {"type": "Sequence", "normalizers": _normalizers(model)},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
        "model": body,
    }
    return msgspec.json.encode(document).decode()


def parse_model(data: bytes) -> Model:
    """Read the protobuf by its field numbers; absent fields have the defaults of the .proto."""
    pieces, trainer, normalizer = [], {}, {}
    for field, value in _fields(data):
        if field == 1:
            pieces.append(_piece(dict(_fields(value))))
        elif field == 2:
            trainer = dict(_fields(value))
        elif field == 3:
            normalizer = dict(_fields(value))
    return Model(
        pieces=pieces,
        model_type=trainer.get(3, UNIGRAM),
        byte_fallback=bool(trainer.get(35, 0)),
        suffix_spaces=bool(trainer.get(24, 0)),
        charsmap=normalizer.get(2, b""),
        dummy_prefix=bool(normalizer.get(3, 1)),
        strip_spaces=bool(normalizer.get(4, 1)),
        escape_spaces=bool(normalizer.get(5, 1)),
    )


def _piece(fields: dict[int, Any]) -> Piece:
    (score,) = struct.unpack("<f", fields.get(2, bytes(4)))
    return Piece(fields.get(1, b"").decode(), score, fields.get(3, NORMAL))


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    position = 0
    while position < len(data):
        key, position = _varint(data, position)
        wire = key & 7
        if wire == 0:
            value, position = _varint(data, position)
            yield key >> 3, value
            continue
        size = {1: 8, 5: 4}.get(wire)
        if wire == 2:
            size, position = _varint(data, position)
        if size is None:
            raise Unsupported(f"protobuf wire type {wire} in a SentencePiece model")
        yield key >> 3, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, position


def _names(model: Model) -> list[str]:
    """The spelling of each piece, with one that cannot occur for control and unused pieces."""
    hidden = (CONTROL, UNUSED)
    return [f"\U0010fffe{i}\U0010ffff" if p.type in hidden else p.text for i, p in enumerate(model.pieces)]


def _normalizers(model: Model) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    if model.charsmap:
        steps.append({"type": "Precompiled", "precompiled_charsmap": base64.b64encode(model.charsmap).decode()})
    if model.strip_spaces:
        steps.append({"type": "Strip", "strip_left": True, "strip_right": True})
        steps.append({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})
    if model.dummy_prefix:
        steps.append({"type": "Prepend", "prepend": "▁"})
    steps.append({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})
    return steps


def _user_defined(model: Model) -> list[dict[str, Any]]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    pieces = enumerate(model.pieces)
    return [{"id": i, "content": piece.text, **flags} for i, piece in pieces if piece.type == USER_DEFINED]


def _bpe(model: Model) -> dict[str, Any]:
    names = _names(model)
    unknown = next((piece.text for piece in model.pieces if piece.type == UNKNOWN), "<unk>")
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": True,
        "ignore_merges": False,
        "vocab": {name: i for i, name in enumerate(names)},
        "merges": _merges(model),
    }


def _merges(model: Model) -> list[tuple[str, str]]:
    """Every way to build a piece from two others, best score first: SentencePiece merges by score, not by rank."""
    mergeable = {piece.text: i for i, piece in enumerate(model.pieces) if piece.type in (NORMAL, UNKNOWN, BYTE)}
    found = []
    for piece in model.pieces:
        if piece.type != NORMAL:
            continue
        for cut in range(1, len(piece.text)):
            left, right = piece.text[:cut], piece.text[cut:]
            if left in mergeable and right in mergeable:
                order = (-piece.score, -len(left), -len(right), mergeable[left], mergeable[right])
                found.append((order, (left, right)))
    found.sort(key=lambda entry: entry[0])
    return [pair for _, pair in found]


def _unigram(model: Model) -> dict[str, Any]:
    unknown = next((i for i, piece in enumerate(model.pieces) if piece.type == UNKNOWN), 0)
    vocab = [[name, piece.score] for name, piece in zip(_names(model), model.pieces, strict=True)]
    return {"type": "Unigram", "unk_id": unknown, "vocab": vocab, "byte_fallback": model.byte_fallback}
