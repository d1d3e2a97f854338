"""The text of single tokens: exact for every kind of tokenizer, wherever a chunk is cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.dashboard.data_pieces import Pieces
from headrace.errors import StoreError
from headrace.tokenizers import Tokenizer, load_tokenizer

KINDS = ("headrace-32k", "bytes", "cl100k_base", "o200k_base", "mistral", "mistral_v3", "tekken", "deepseek")
TEXTS = [
    "def main():\n    return {'a': 1}\n\n",
    "emoji 👨‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪 ☺️ e\u0301 \u200d",
    "日本語と漢字、한국어, العربية, עברית, हिन्दी, ไทย 𝔘𝔫𝔦 ꙮ ᚠᛇᚻ ䷀䷁",
    "\ufffd\ufffdx\ufffd \ufffd 中\ufffd",
    "<script>alert('</script>')</script> \u202eevil\u202c \x00 \x1b[31m",
    "  two spaces, " + " " * 40 + "many",
    "",
    "<|endoftext|> </s> <unk> [INST]",
]


@pytest.fixture
def opened(real_tokenizers: dict[str, Path]) -> Callable[[str], Tokenizer]:
    return lambda name: load_tokenizer(real_tokenizers.get(name, name))


def encode(tokenizer: Tokenizer, texts: Sequence[str] = TEXTS) -> list[int]:
    rows = tokenizer.reference().encode([text.encode() for text in texts])
    assert tokenizer.special.eos is not None
    return [one for row in rows for one in [*row.tolist(), tokenizer.special.eos]]


def check_every_cut(pieces: Pieces, ids: Sequence[int], sizes: Sequence[int] = (1, 2, 3, 5, 16, 64, 1000)) -> None:
    for size in sizes:
        for start in range(0, len(ids), size):
            chunk = list(ids[start : start + size])
            found = pieces.of(chunk)
            assert len(found) == len(chunk)
            assert "".join(found) == pieces.decode(chunk)


@pytest.mark.parametrize("name", KINDS)
def test_joined_they_are_the_decoded_text_wherever_it_is_cut(name: str, opened: Callable[[str], Tokenizer]) -> None:
    tokenizer = opened(name)
    check_every_cut(Pieces(tokenizer), encode(tokenizer))


@pytest.mark.parametrize("name", ["bytes", "cl100k_base", "o200k_base", "tekken"])
def test_a_character_belongs_to_the_token_in_which_its_bytes_end(name: str, opened: Callable[[str], Tokenizer]) -> None:
    """Compared with the bytes of each token, which these kinds tell."""
    tokenizer = opened(name)
    ids = encode(tokenizer, [text for text in TEXTS if text])
    assert Pieces(tokenizer).of(ids) == by_bytes(tokenizer, ids)


def by_bytes(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    found, held = [], b""
    ranks = {rank: data for data, rank in getattr(tokenizer, "ranks", {}).items()}
    for one in ids:
        held += bytes_of(tokenizer, ranks, one)
        whole = len(held)
        while whole and not is_text(held[:whole]):
            whole -= 1
        found.append(held[:whole].decode())
        held = held[whole:]
    assert not held
    return found


def bytes_of(tokenizer: Tokenizer, ranks: dict[int, bytes], one: int) -> bytes:
    if tokenizer.kind == "bytes" and one < 256:
        return bytes((one,))
    found = ranks.get(one - getattr(tokenizer, "_offset", 0))
    return tokenizer.decode([one]).encode() if found is None else found


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_a_word_keeps_the_space_before_it(opened: Callable[[str], Tokenizer]) -> None:
    """SentencePiece leaves out the space at a beginning, and only there."""
    tokenizer = opened("mistral")
    pieces = Pieces(tokenizer)
    ids = encode(tokenizer, ["the cat sat on the mat"])
    assert pieces.of(ids) == ["the", " cat", " sat", " on", " the", " mat", "</s>"]
    assert pieces.alone(ids[1]) == "cat"
    assert pieces.inside(ids[1], ids[0]) == " cat"


@pytest.mark.parametrize("name", KINDS)
def test_control_tokens_are_known_and_their_spelling_in_a_document_is_not_one(
    name: str, opened: Callable[[str], Tokenizer]
) -> None:
    tokenizer = opened(name)
    pieces, ids = Pieces(tokenizer), encode(tokenizer, ["<|endoftext|> </s> <unk> [INST] <|eos|>"])
    assert [one in pieces.special for one in ids] == [False] * (len(ids) - 1) + [True]


@given(st.text(max_size=60), st.integers(0, 30), st.integers(1, 30))
def test_any_text_cut_anywhere(text: str, start: int, size: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    for pieces in (BYTES, BYTE_LEVEL):
        chunk = pieces.tokenizer.reference().encode([text.encode()])[0].tolist()[start : start + size]
        assert "".join(pieces.of(chunk)) == pieces.decode(chunk)


BYTES, BYTE_LEVEL = Pieces(load_tokenizer("bytes")), Pieces(load_tokenizer("headrace-32k"))


@given(st.binary(max_size=24))
def test_bytes_that_are_no_text(data: bytes) -> None:
    """What a dataset that was made elsewhere may hold, and what every cut through a character makes."""
    found = BYTES.of(list(data))
    assert "".join(found) == data.decode("utf-8", "replace")


def test_a_run_of_byte_tokens_is_broken_as_a_whole(tmp_path: Path) -> None:
    """A decoder that falls back to bytes gives one U+FFFD for each byte of a run that is not whole."""
    pieces = Pieces(load_tokenizer(byte_fallback_tokenizer(tmp_path)))
    ids = pieces.tokenizer.reference().encode(["a 中文字 b 中".encode()])[0].tolist()
    check_every_cut(pieces, ids, range(1, len(ids) + 1))
    whole = pieces.of(ids)
    assert [text for text in whole if text] == ["a", " ", "中", "文", "字", " ", "b", " ", "中"]
    assert pieces.of(ids[:-1])[-2:] == ["\ufffd", "\ufffd"]


def test_words_with_prefixes_for_their_parts(tmp_path: Path) -> None:
    """A WordPiece decoder puts spaces between words and takes them out before a full stop."""
    from tokenizers.decoders import WordPiece as Decoder
    from tokenizers.models import WordPiece

    from tokenizers import Tokenizer as Library

    vocab = {"[UNK]": 0, "head": 1, "##race": 2, "runs": 3, ".": 4, "[SEP]": 5}
    library = Library(WordPiece(vocab, unk_token="[UNK]"))
    library.decoder = Decoder()
    library.save(str(tmp_path / "tokenizer.json"))
    pieces = Pieces(load_tokenizer(tmp_path / "tokenizer.json"))
    assert pieces.of([1, 2, 3, 4, 5]) == ["head", "race", " runs", ".", " [SEP]"]
    assert pieces.special == {5}


def byte_fallback_tokenizer(folder: Path) -> Path:
    from tokenizers.decoders import ByteFallback, Fuse, Replace, Sequence, Strip
    from tokenizers.models import BPE
    from tokenizers.normalizers import Replace as Normalize

    from tokenizers import Tokenizer as Library

    vocab = {f"<0x{byte:02X}>": byte for byte in range(256)} | {"▁": 256, "a": 257, "b": 258, "</s>": 259}
    library = Library(BPE(vocab, [], byte_fallback=True))
    library.normalizer = Normalize(" ", "▁")
    library.decoder = Sequence([Replace("▁", " "), ByteFallback(), Fuse(), Strip(" ", 1, 0)])
    library.add_special_tokens(["</s>"])
    library.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


class Odd(type(load_tokenizer("bytes"))):  # type: ignore[misc]
    """Shows nothing of a text but its length before there are 100 tokens of it."""

    def decode(self, ids: Sequence[int]) -> str:
        return f"{len(ids)}!" if len(ids) < 100 else "x" * len(ids)


def test_even_a_decoder_like_no_other_loses_nothing() -> None:
    pieces = Pieces(Odd())
    pieces._additive = False
    assert "".join(pieces.of(range(300))) == "x" * 300


def test_an_id_that_is_not_the_tokenizers_own() -> None:
    with pytest.raises(StoreError, match=r"cannot decode these ids .*headrace verify"):
        BYTES.of([72, 300])
