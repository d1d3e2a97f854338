"""A name, file, folder or hub id -> a Tokenizer."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from headrace.errors import TokenizerError, Unreachable
from headrace.hub import library as huggingface_hub
from headrace.tokenizers.base import DESCRIPTOR, Descriptor, Tokenizer
from headrace.tokenizers.byte_level import ByteTokenizer
from headrace.tokenizers.hf import EXPECTED, HFTokenizer
from headrace.tokenizers.hub import MAIN, fetch_tokenizer
from headrace.tokenizers.sentencepiece_model import SentencePieceTokenizer
from headrace.tokenizers.tekken import TekkenTokenizer
from headrace.tokenizers.tiktoken_ranks import ALIASES, PATTERNS, TiktokenTokenizer, fetch_by_name, pattern_for_file

DEFAULT = "headrace-32k"
BUILT_IN = {"headrace-32k": Path(__file__).parent / "data" / "headrace-32k.json"}

FROM_DESCRIPTOR: dict[str, Callable[[Path, Descriptor], Tokenizer]] = {
    "bytes": lambda folder, descriptor: ByteTokenizer(),
    "hf": HFTokenizer.from_descriptor,
    "sentencepiece": SentencePieceTokenizer.from_descriptor,
    "tekken": TekkenTokenizer.from_descriptor,
    "tiktoken": TiktokenTokenizer.from_descriptor,
}
HUB_ID = re.compile(r"(?:[A-Za-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*(?:@[\w./-]+)?")


def load_tokenizer(name: str | Path = DEFAULT) -> Tokenizer:
    """Load by built-in or tiktoken name, by file or folder, or by Hugging Face hub id."""
    text = os.fspath(name)
    if text == "bytes":
        return ByteTokenizer()
    if text in BUILT_IN:
        return HFTokenizer(BUILT_IN[text], text)
    path = Path(text).expanduser()
    if path.exists():
        return _from_folder(path, text) if path.is_dir() else _from_file(path, text, None)
    file, _, pattern = text.rpartition(":")
    if file and Path(file).is_file():
        return _from_file(Path(file), file, pattern)
    known = text if text == "gpt2" else ALIASES.get(text, text)  # gpt2 is the hub's, for HF_ENDPOINT to hold
    if known in PATTERNS:
        return TiktokenTokenizer(_cached_ranks(known), text, known)
    return _from_hub(text)


def _from_file(path: Path, name: str, pattern: str | None) -> Tokenizer:
    if not os.access(path, os.R_OK):
        raise TokenizerError(f"{path} cannot be read: no permission. Make it readable and run the command again.")
    if path.suffix == ".tiktoken" or pattern is not None:
        return TiktokenTokenizer(path, name, pattern_for_file(path, pattern))
    if path.suffix == ".json":
        return TekkenTokenizer(path, name) if _is_tekken(path) else HFTokenizer(path, name)
    if ".model" in path.name:  # Mistral names its files tokenizer.model.v3
        return SentencePieceTokenizer(path, name)
    raise TokenizerError(
        f"{path} does not look like a tokenizer: its ending is {path.suffix or 'missing'!r}. {EXPECTED}"
    )


def _from_folder(folder: Path, name: str) -> Tokenizer:
    if (folder / DESCRIPTOR).is_file():
        descriptor = msgspec.json.decode((folder / DESCRIPTOR).read_bytes(), type=Descriptor)
        return FROM_DESCRIPTOR[descriptor.kind](folder, descriptor)
    if (folder / "metadata.json").is_file() and (folder / "tokenizer").is_dir():
        return _from_folder(folder / "tokenizer", name)  # a prepared dataset carries its own
    for file in MAIN:
        if (folder / file).is_file():
            return _from_file(folder / file, name, None)
    raise TokenizerError(f"{folder} holds no tokenizer.json, tekken.json or tokenizer.model. {EXPECTED}")


def _is_tekken(path: Path) -> bool:
    with open(path, "rb") as file:
        head = file.read(4096)
    return path.name.startswith("tekken") or (b'"default_num_special_tokens"' in head and b'"pattern"' in head)


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.environ.get("HEADRACE_CACHE") or f"{base}/headrace").expanduser()


def _cached_ranks(name: str) -> Path:
    path = cache_folder() / "tokenizers" / f"{name}.tiktoken"
    return path if path.is_file() else fetch_by_name(name, path.parent)


def _from_hub(name: str) -> Tokenizer:
    if not HUB_ID.fullmatch(name):
        raise TokenizerError(f"No tokenizer at {name!r}: there is no such file or folder. {EXPECTED}")
    try:
        folder = fetch_tokenizer(name)
    except Unreachable as error:
        offline = huggingface_hub().constants.HF_HUB_OFFLINE
        raise (TokenizerError if offline else Unreachable)(_not_given(name, error)) from error
    except TokenizerError as error:
        raise TokenizerError(_not_given(name, error)) from error
    return _from_folder(folder, name)


def _not_given(name: str, error: Exception) -> str:
    what = f"{name!r} is neither a file, nor a folder, nor a known name, and the hub did not give it"
    return f"{what}: {error} {EXPECTED}"
