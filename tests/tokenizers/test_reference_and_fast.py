"""Every kind of tokenizer, against the library that defines it and between its engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.tokenizers import Tokenizer, load_tokenizer

EXACT_ENGINES = {  # what is known to load and to be exact; a release that breaks one must be noticed
    "headrace-32k": ("gigatoken", "fastokens"),
    "cl100k_base": ("gigatoken", "fastokens"),
    "o200k_base": ("gigatoken", "fastokens"),
    "deepseek": ("gigatoken", "fastokens"),
    "mistral": ("gigatoken", "fastokens"),
    "mistral_v3": ("gigatoken", "fastokens"),
    "tekken": ("fastokens",),
}


def load(name: str, real_tokenizers: dict[str, Path]) -> Tokenizer:
    return load_tokenizer(real_tokenizers.get(name, name))


def tiktoken_ids(path: Path, name: str) -> Callable[[str], list[int]]:
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    from headrace.tokenizers.tiktoken_ranks import PATTERNS

    ranks = load_tiktoken_bpe(str(path))
    return tiktoken.Encoding(
        name, pat_str=PATTERNS[name].regex, mergeable_ranks=ranks, special_tokens={}
    ).encode_ordinary


def library_ids(name: str, path: Path) -> Callable[[str], list[int]]:
    """The ids as a user of the library itself would get them, control tokens in text switched off."""
    if name.endswith("_base"):
        return tiktoken_ids(path, name)
    if name == "deepseek":
        import tokenizers

        tokenizer = tokenizers.Tokenizer.from_file(str(path))
        tokenizer.encode_special_tokens = True
        return lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids)
    if name == "tekken":
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        tekken: Any = Tekkenizer.from_file(str(path))
        return lambda text: list(tekken.encode(text, bos=False, eos=False))
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return lambda text: list(processor.encode(text))


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base", "deepseek", "mistral", "mistral_v3", "tekken"])
def test_reference_gives_the_ids_of_the_library(
    name: str, real_tokenizers: dict[str, Path], hard_documents: list[str]
) -> None:
    rows = load(name, real_tokenizers).reference().encode([text.encode() for text in hard_documents])
    expected = library_ids(name, real_tokenizers[name])
    for row, text in zip(rows, hard_documents, strict=True):
        assert row.tolist() == expected(text), text[:50]


@pytest.mark.parametrize("name", EXACT_ENGINES)
def test_fast_engines_give_the_ids_of_the_reference(
    name: str, real_tokenizers: dict[str, Path], hard_documents: list[str]
) -> None:
    tokenizer = load(name, real_tokenizers)
    texts = [text.encode() for text in hard_documents]
    expected = [row.tolist() for row in tokenizer.reference().encode(texts)]
    for engine in EXACT_ENGINES[name]:
        assert [row.tolist() for row in tokenizer.fast(engine).encode(texts)] == expected, engine


@pytest.mark.parametrize("name", ["bytes", *EXACT_ENGINES])
def test_text_never_becomes_a_control_token(name: str, real_tokenizers: dict[str, Path]) -> None:
    tokenizer = load(name, real_tokenizers)
    controls = {tokenizer.token_id(text) for text in tokenizer.control_texts()}
    text = " ".join(tokenizer.control_texts()).encode()
    engines = [tokenizer.reference(), *(tokenizer.fast(engine) for engine in EXACT_ENGINES.get(name, ()))]
    for engine in engines:
        assert not controls.intersection(engine.encode([text])[0].tolist()), engine.name


@pytest.mark.parametrize("name", ["bytes", *EXACT_ENGINES])
def test_decode_gives_the_text_back(name: str, real_tokenizers: dict[str, Path]) -> None:
    tokenizer = load(name, real_tokenizers)
    text = "Où est-ce? 日本語 👍🏽 x = [1, 2]\n\tdone"
    assert tokenizer.decode(tokenizer.reference().encode([text.encode()])[0]) == text


@pytest.mark.parametrize("name", ["bytes", *EXACT_ENGINES])
def test_a_saved_tokenizer_is_the_same(name: str, real_tokenizers: dict[str, Path], tmp_path: Path) -> None:
    tokenizer = load(name, real_tokenizers)
    tokenizer.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert (again.kind, again.sha256, again.special) == (tokenizer.kind, tokenizer.sha256, tokenizer.special)
    assert again.vocab_size == tokenizer.vocab_size
    text = [b"the same ids <s> \xf0\x9f\x91\x8d"]
    assert again.reference().encode(text)[0].tolist() == tokenizer.reference().encode(text)[0].tolist()


@pytest.mark.parametrize(
    ("name", "eos", "vocab_size"),
    [
        ("bytes", 256, 259),
        ("headrace-32k", 32752, 32768),
        ("cl100k_base", 100257, 100277),
        ("o200k_base", 199999, 200019),
        ("deepseek", 1, 129280),
        ("mistral", 2, 32000),
        ("tekken", 2, 131072),
    ],
)
def test_special_ids(name: str, eos: int, vocab_size: int, real_tokenizers: dict[str, Path]) -> None:
    tokenizer = load(name, real_tokenizers)
    assert (tokenizer.special.eos, tokenizer.vocab_size) == (eos, vocab_size)


def test_sentencepiece_unigram(tmp_path: Path, hard_documents: list[str]) -> None:
    """A small Unigram model trained here: an engine is exact on it, or is left out with a reason."""
    import sentencepiece

    from headrace.tokenizers import check_parity

    text = tmp_path / "text.txt"
    text.write_text("\n".join(f"sentence number {i} says hello to the world of tokens" for i in range(500)))
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(tmp_path / "unigram"), vocab_size=120, model_type="unigram", minloglevel=2
    )
    tokenizer = load_tokenizer(tmp_path / "unigram.model")
    report = check_parity(tokenizer, [text.read_bytes()])
    assert report.reference == "sentencepiece"
    assert all(engine.exact or engine.unsupported or engine.mismatch for engine in report.engines)
    (ids,) = tokenizer.reference().encode([b"hello world"])
    assert tokenizer.decode(ids) == "hello world"


def test_known_name_comes_from_tiktokens_cache(
    real_tokenizers: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "tiktoken"
    cache.mkdir()
    (cache / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4").write_bytes(real_tokenizers["cl100k_base"].read_bytes())
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "headrace"))
    named = load_tokenizer("cl100k_base")
    assert named.name == "cl100k_base"
    assert named.sha256 == load_tokenizer(real_tokenizers["cl100k_base"]).sha256


def test_someone_elses_ranks_need_a_pattern(real_tokenizers: dict[str, Path], tmp_path: Path) -> None:
    ranks = tmp_path / "mine.tiktoken"
    ranks.write_bytes(b"".join(real_tokenizers["cl100k_base"].read_bytes().splitlines(keepends=True)[:5000]))
    tokenizer = load_tokenizer(f"{ranks}:cl100k_base")
    assert (tokenizer.special.eos, tokenizer.vocab_size) == (5000, 5001)
