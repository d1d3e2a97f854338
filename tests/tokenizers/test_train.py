"""A trained tokenizer is a real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.errors import UsageError
from headrace.tokenizers import check_parity, load_tokenizer
from headrace.tokenizers.train import train_bpe

TEXTS = [f"def function_{i}(value): return value + {i}  # naïve 日本語 {i}\n".encode() for i in range(2000)]


@pytest.mark.parametrize("pattern", ["o200k_base", "cl100k_base"])
def test_trained_tokenizer_is_exact_in_every_engine(pattern: str, tmp_path: Path) -> None:
    path = train_bpe(
        TEXTS, tmp_path / "t.json", vocab_size=400, pattern=pattern, control_tokens=("<|endoftext|>", "<|x|>")
    )
    tokenizer = load_tokenizer(path)
    assert tokenizer.vocab_size <= 400
    assert tokenizer.special.eos == tokenizer.vocab_size - 2
    assert [engine.exact for engine in check_parity(tokenizer, TEXTS[:100]).engines] == [True, True]
    (ids,) = tokenizer.reference().encode(TEXTS[:1])
    assert tokenizer.decode(ids).encode() == TEXTS[0]
    assert len(ids) < len(TEXTS[0]) / 2


def test_too_small_a_vocabulary(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least 257"):
        train_bpe(TEXTS, tmp_path / "t.json", vocab_size=100)


def test_unknown_pattern(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Use one of"):
        train_bpe(TEXTS, tmp_path / "t.json", pattern="nonsense")
