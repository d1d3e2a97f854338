"""checkpoint.json: what a checkpoint is. It is written last, and vouches for every file and for itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import xxhash

from headrace.errors import StoreError, UsageError
from headrace.version import __version__

FORMAT_VERSION = 1
SHARDED_VERSION = 2  # the tensors are shards of many ranks; what knows only version 1 could not read it
FILE = "checkpoint.json"
UNSIGNED = "0" * 32
DESCRIPTION = ("tokens", "metrics", "model", "tokenizer_sha256", "datasets", "extra")


class Damaged(StoreError):
    """One checkpoint that is not what was written; another one may be whole."""


class StoredFile(msgspec.Struct, frozen=True):
    bytes: int
    xxh3_128: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    format: str = "headrace-checkpoint"
    format_version: int = FORMAT_VERSION
    headrace_version: str = __version__
    step: int
    tokens: int = 0
    metrics: dict[str, float | None] = {}  # None: it was not a finite number
    model: dict[str, Any] = {}  # the model's config, enough to build it again
    tokenizer_sha256: str | None = None
    datasets: list[str] = []
    extra: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    files: dict[str, StoredFile] = {}
    xxh3_128: str = UNSIGNED  # of this very file, with zeros here


def describe(step: int, description: Mapping[str, Any]) -> Manifest:
    """A manifest without files yet, checked and cut loose from the caller's dicts."""
    unknown = sorted(set(description) - set(DESCRIPTION))
    if unknown:
        raise UsageError(
            f"A checkpoint's manifest has no {', '.join(unknown)}; it has {', '.join(DESCRIPTION)}. "
            f"Put what is your own under extra."
        )
    if step < 0:
        raise UsageError(f"step is {step!r}; a checkpoint's step is a whole number from 0 on.")
    fields = {"step": step, **description, "metrics": _numbers(description.get("metrics", {}))}
    try:
        return msgspec.json.decode(msgspec.json.encode(fields), type=Manifest)
    except (msgspec.MsgspecError, TypeError) as error:
        raise UsageError(f"The manifest of step {step:,} cannot be written as JSON: {error}.") from error


def encode_manifest(manifest: Manifest) -> bytes:
    unsigned = msgspec.json.encode(msgspec.structs.replace(manifest, xxh3_128=UNSIGNED))
    data = msgspec.json.format(unsigned, indent=2) + b"\n"
    # The last occurrence: the checksum is the last field.
    head, _, tail = data.rpartition(UNSIGNED.encode())
    return head + xxhash.xxh3_128(data).hexdigest().encode() + tail


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a checkpoint, with every bit of it as it was written."""
    try:
        data = (folder / FILE).read_bytes()
        fields = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged(f"{FILE} is not what was written ({error})") from error
    except OSError as error:
        raise Damaged(f"{FILE} cannot be read ({error.strerror})") from error
    _check_signature(data, fields)
    if fields["format_version"] > SHARDED_VERSION:
        raise StoreError(
            f"{folder / FILE} has format version {fields['format_version']}; this Headrace reads up to "
            f"{SHARDED_VERSION}. Run: pip install --upgrade headrace"
        )
    return msgspec.convert(fields, Manifest)


def _check_signature(data: bytes, fields: dict[str, Any]) -> None:
    signature = str(fields.get("xxh3_128", "")).encode()
    head, found, tail = data.rpartition(signature) if signature else (data, b"", b"")
    if not found or xxhash.xxh3_128(head + UNSIGNED.encode() + tail).hexdigest().encode() != signature:
        raise Damaged(f"{FILE} is not what was written (checksum differs)")


def _numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    try:
        return {name: float(value) for name, value in metrics.items()}
    except (TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"metrics must map names to numbers, not {metrics!r}.") from error
