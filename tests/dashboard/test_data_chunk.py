"""The chunk browser: every token and every document in its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from dataset import EOS, random_documents, write_dataset

from conftest_pipeline import write_jsonl
from headrace import prepare
from headrace.dashboard.data_chunk import chunk_of_document, documents_within, show_chunk
from headrace.dashboard.data_missing import NotFound
from headrace.dashboard.data_pieces import Pieces
from headrace.errors import StoreError, UsageError
from headrace.storage import TokenStore
from headrace.telemetry import encode_json
from headrace.tokenizers import load_tokenizer

HOSTILE = [
    "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "</script><!--",
    "a NUL \x00 and an escape \x1b[2J",
    "עברית \u202etfel ot thgir\u202c العربية",
    "half a pair: \\ud800, and \u2028 a line \u2029 break",
    "日本語と漢字 👨‍👩‍👧‍👦",
    "<|endoftext|></s>",
]
KINDS = ("headrace-32k", "bytes", "cl100k_base", "mistral", "tekken")


@pytest.mark.parametrize("name", KINDS)
def test_all_chunks_in_a_row_are_the_text(name: str, real_tokenizers: dict[str, Path], tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "hostile.jsonl", HOSTILE * 3)
    tokenizer = str(real_tokenizers.get(name, name))
    store = prepare(source, out=tmp_path / "out", tokenizer=tokenizer, chunk_size=32, task_bytes=300)
    pieces = Pieces(store.tokenizer)
    for size in (16, 100, 8192):
        ids, begun = [], 0
        for index in range(show_chunk(store, pieces, 0, size)["chunks"]):
            found = show_chunk(store, pieces, index, size)
            ids += [token["id"] for token in found["tokens"]]
            assert "".join(token["text"] for token in found["tokens"]) == store.decode(ids[index * size :])
            ends = [number for number, token in enumerate(found["tokens"]) if token.get("special")]
            assert ends == [document["stop"] - 1 for document in found["documents"] if document["ends"]]
            begun += sum(document["begins"] for document in found["documents"])
            encode_json(found)
        assert ids == store.tokens(0, store.total_tokens).tolist()
        assert begun == store.num_documents == len(HOSTILE) * 3


def test_documents_of_every_stretch(tmp_path: Path) -> None:
    written = write_dataset(tmp_path, [random_documents(seed, 12, longest=9) for seed in range(3)])
    store = TokenStore(tmp_path)
    bounds, at = [], 0
    for number, document in enumerate(written):
        bounds.append((number, at, at + len(document)))
        at += len(document)
    for start in range(at):
        for stop in (start + 1, start + 5, at):
            expected = [
                {
                    "number": number,
                    "start": max(first, start) - start,
                    "stop": min(last, stop) - start,
                    "begins": first >= start,
                    "ends": last <= stop,
                    "length": last - first,
                }
                for number, first, last in bounds
                if first < stop and last > start
            ]
            assert list(documents_within(store, start, min(stop, at))) == expected


def test_documents_without_a_token_have_no_place(tmp_path: Path) -> None:
    write_dataset(tmp_path, [[[], [1, 2], [], [], [3], []], [[], [4]]])
    found = list(documents_within(TokenStore(tmp_path), 0, 4))
    assert [(row["number"], row["start"], row["stop"]) for row in found] == [(1, 0, 2), (4, 2, 3), (7, 3, 4)]


def test_the_chunk_in_which_a_document_begins(tmp_path: Path) -> None:
    written = write_dataset(tmp_path, [random_documents(seed, 12) for seed in range(3)])
    store, at = TokenStore(tmp_path), 0
    for number, document in enumerate(written):
        assert chunk_of_document(store, number, 16) == at // 16
        at += len(document)
    with pytest.raises(NotFound, match=r"document 36: the train split of .* has 36 documents.* up to 35"):
        chunk_of_document(store, 36, 16)


def test_a_short_last_chunk_is_shown(tmp_path: Path) -> None:
    write_dataset(tmp_path, [[[65] * 20 + [EOS]]])
    found = show_chunk(TokenStore(tmp_path), Pieces(load_tokenizer("bytes")), 1, 16)
    assert (found["chunks"], len(found["tokens"]), found["start"]) == (2, 5, 16)
    assert found["tokens"][0] == {"id": 65, "text": "A"}
    assert found["tokens"][-1] == {"id": EOS, "text": "<|eos|>", "special": True}
    (document,) = found["documents"]
    assert (document["begins"], document["ends"], document["length"]) == (False, True, 21)


@pytest.mark.parametrize("size", [0, -5, 15, 8193, 10**12])
def test_a_size_that_is_not_shown(tmp_path: Path, size: int) -> None:
    write_dataset(tmp_path, [[[1, EOS]]])
    with pytest.raises(UsageError, match="a chunk is shown with 16 to 8,192 tokens"):
        show_chunk(TokenStore(tmp_path), Pieces(load_tokenizer("bytes")), 0, size)


@pytest.mark.parametrize("index", [-1, 1, 10**17])
def test_a_chunk_that_is_not_there(tmp_path: Path, index: int) -> None:
    write_dataset(tmp_path, [[[1, EOS]]])
    with pytest.raises(NotFound, match=r"has 1 chunks of 16 tokens, numbered from 0. Ask for one up to 0"):
        show_chunk(TokenStore(tmp_path), Pieces(load_tokenizer("bytes")), index, 16)


def test_an_id_beyond_the_vocabulary(tmp_path: Path) -> None:
    write_dataset(tmp_path, [[[1, 300, EOS]]])
    with pytest.raises(StoreError, match="holds the id 300"):
        show_chunk(TokenStore(tmp_path), Pieces(load_tokenizer("bytes")), 0, 16)


@pytest.mark.parametrize("tokenizer", ["headrace-32k", "bytes"])
def test_half_a_surrogate_pair_in_the_input(tmp_path: Path, tokenizer: str) -> None:
    """Whatever becomes of it, what is shown can be sent as JSON and is what the dataset holds."""
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "before \\ud800 after"}\n{"text": "good \\ud83d\\ude00"}\n')
    store = prepare(tmp_path / "a.jsonl", out=tmp_path / "out", tokenizer=tokenizer, max_reject_rate=1.0)
    found = show_chunk(store, Pieces(store.tokenizer), 0, 64)
    text = "".join(token["text"] for token in found["tokens"])
    assert text == store.decode(store.tokens(0, store.total_tokens))
    assert "good \U0001f600" in text
    assert text.encode() in encode_json({"text": text})
