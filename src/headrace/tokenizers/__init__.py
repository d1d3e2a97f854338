"""Batches of documents -> token ids."""

from headrace.tokenizers.base import FAST_ENGINES, Engine, Special, Tokenizer, Unsupported
from headrace.tokenizers.parity import EngineReport, ParityReport, check_parity, choose_engine, open_engine
from headrace.tokenizers.resolve import DEFAULT, load_tokenizer

__all__ = [
    "DEFAULT",
    "FAST_ENGINES",
    "Engine",
    "EngineReport",
    "ParityReport",
    "Special",
    "Tokenizer",
    "Unsupported",
    "check_parity",
    "choose_engine",
    "load_tokenizer",
    "open_engine",
]
