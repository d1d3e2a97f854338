"""The gate: a fast engine that is wrong is found, shown on the smallest text, and not used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from headrace.tokenizers import Tokenizer, check_parity, choose_engine, load_tokenizer
from headrace.tokenizers.base import Engine, Ids, Unsupported
from headrace.tokenizers.parity import first_difference, shrink


class WrongOn:
    """An engine that is right except on texts that hold one string."""

    name = "gigatoken"

    def __init__(self, right: Engine, bad: bytes) -> None:
        self._right, self._bad = right, bad

    def encode(self, texts: Sequence[bytes]) -> list[Ids]:
        rows = self._right.encode(texts)
        return [row + np.uint32(1) if self._bad in text else row for row, text in zip(rows, texts, strict=True)]


@pytest.fixture
def tokenizer() -> Tokenizer:
    return load_tokenizer("headrace-32k")


def use(monkeypatch: pytest.MonkeyPatch, tokenizer: Tokenizer, bad: bytes) -> None:
    real = type(tokenizer).fast

    def fast(self: Tokenizer, engine: str) -> Engine:
        return WrongOn(self.reference(), bad) if engine == "gigatoken" else real(self, engine)

    monkeypatch.setattr(type(tokenizer), "fast", fast)


def test_exact_engines_pass(tokenizer: Tokenizer) -> None:
    report = check_parity(tokenizer, [b"some text of the user"])
    assert [engine.exact for engine in report.engines] == [True, True]
    assert report.fastest in ("gigatoken", "fastokens")


def test_a_wrong_engine_is_shown_on_the_smallest_text(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, tokenizer, b"zebra")
    report = check_parity(tokenizer, [b"nothing here", b"a long story about a zebra that went to the river " * 20])
    wrong = report.engines[0]
    assert not wrong.exact
    assert wrong.mismatch is not None
    assert wrong.mismatch.text == "zebra"
    assert wrong.mismatch.engine_ids != wrong.mismatch.reference_ids
    assert report.fastest == "fastokens"


def test_a_wrong_first_engine_makes_a_small_job_try_the_next(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, tokenizer, b"zebra")
    assert choose_engine(tokenizer, [b"zebra"], all_engines=False).fastest == "fastokens"
    assert choose_engine(tokenizer, [b"horse"], all_engines=False).fastest == "gigatoken"


def test_nasty_strings_are_compared_without_any_text_of_the_user(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, tokenizer, b"<|endoftext|>")
    assert not check_parity(tokenizer).engines[0].exact


def test_without_fast_engines_the_reference_is_used(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: Tokenizer, engine: str) -> Engine:
        raise Unsupported(f"{engine} is not installed")

    monkeypatch.setattr(type(tokenizer), "fast", none)
    report = check_parity(tokenizer, [b"text"])
    assert report.fastest == "tokenizers"
    assert report.engines[0].unsupported == "gigatoken is not installed"


def test_first_difference_names_the_document(tokenizer: Tokenizer) -> None:
    reference = tokenizer.reference()
    texts = [b"one", b"two", b"three"]
    rows = reference.encode(texts)
    assert first_difference(rows, reference, texts) is None
    rows[1] = np.append(rows[1], np.uint32(7))
    assert first_difference(rows, reference, texts) == 1


def test_shrink_keeps_only_what_matters() -> None:
    assert shrink("x" * 999 + "AB" + "y" * 777, lambda text: "AB" in text) == "AB"


def test_a_text_that_breaks_the_reference_proves_nothing(real_tokenizers: dict[str, object]) -> None:
    """tiktoken overflows its stack on a million spaces before a letter; the run must go on."""
    cl100k = load_tokenizer(str(real_tokenizers["cl100k_base"]))
    report = check_parity(cl100k, [b" " * 1_000_000 + b"a", b"text"], engines=["gigatoken"])
    assert report.engines[0].exact
    assert report.documents < report.engines[0].documents
