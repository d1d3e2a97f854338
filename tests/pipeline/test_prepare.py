"""prepare, in this process: what comes out is what the reference gives for what went in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest_pipeline import content, make_texts, write_jsonl
from headrace import TokenStore, load_tokenizer, prepare
from headrace.errors import DataRejected, UsageError
from headrace.packing import load_plan
from headrace.storage import verify


class Notes:
    def __init__(self) -> None:
        self.notices: list[str] = []
        self.seen: list[Any] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def progress(self, progress: Any) -> None:
        self.seen.append(progress)


@pytest.mark.parametrize(
    "name", ["headrace-32k", "cl100k_base", "o200k_base", "deepseek", "mistral", "tekken", "bytes"]
)
def test_ids_are_those_of_the_reference(
    name: str, real_tokenizers: dict[str, Path], hard_documents: list[str], tmp_path: Path
) -> None:
    source = write_jsonl(tmp_path / "hard.jsonl", hard_documents)
    store = prepare(source, out=tmp_path / "out", tokenizer=real_tokenizers.get(name, name), chunk_size=64)
    tokenizer = load_tokenizer(real_tokenizers.get(name, name))
    rows = tokenizer.reference().encode([text.encode() for text in hard_documents])
    assert store.num_documents == len(hard_documents)
    for i in range(len(hard_documents)):
        expected = [*rows[i].tolist(), tokenizer.special.eos]
        assert store.document(i).tolist() == expected, hard_documents[i][:40]
    assert store.vocab_size == tokenizer.vocab_size
    assert store.metadata.text_bytes == sum(len(text.encode()) for text in hard_documents)


def test_bos_and_no_eos(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", ["ab", ""])
    store = prepare(source, out=tmp_path / "both", tokenizer="bytes", bos=True)
    assert [store.document(i).tolist() for i in range(2)] == [[257, 97, 98, 256], [257, 256]]
    store = prepare(source, out=tmp_path / "none", tokenizer="bytes", eos=False)
    assert [store.document(i).tolist() for i in range(2)] == [[97, 98], []]


def test_another_eos_token(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", ["ab"])
    store = prepare(source, out=tmp_path / "out", eos_token="<|end|>")
    assert store.document(0)[-1] == load_tokenizer("headrace-32k").token_id("<|end|>") == store.metadata.eos_token_id


def test_val_documents_do_not_depend_on_files_or_their_order(tmp_path: Path) -> None:
    texts = make_texts(600)
    one = write_jsonl(tmp_path / "all.jsonl", texts)
    parts = [write_jsonl(tmp_path / f"{name}.jsonl", part) for name, part in (("z", texts[:200]), ("a", texts[200:]))]
    first = prepare(one, out=tmp_path / "one", tokenizer="bytes", val_fraction=0.1)
    second = prepare(parts[::-1], out=tmp_path / "two", tokenizer="bytes", val_fraction=0.1, task_bytes=3000)
    sets = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        val = TokenStore(folder, split="val")
        sets.append({val.document(i).tobytes() for i in range(val.num_documents)})
    assert sets[0] == sets[1]
    assert 30 < len(sets[0]) < 100
    assert first.num_documents + len(sets[0]) == 600
    train = {second.document(i).tobytes() for i in range(second.num_documents)}
    assert not train & sets[0]


@pytest.mark.parametrize("max_chunks", [1, 7, 40])
def test_max_chunks_takes_the_first_documents(tmp_path: Path, max_chunks: int) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", make_texts(400))
    whole = prepare(source, out=tmp_path / "whole", tokenizer="bytes", chunk_size=128, task_bytes=5000)
    some = prepare(
        source, out=tmp_path / "some", tokenizer="bytes", chunk_size=128, task_bytes=5000, max_chunks=max_chunks
    )
    assert some.num_chunks == max_chunks
    assert some.total_tokens == max_chunks * 128
    assert some.metadata.text_bytes == pytest.approx(some.total_tokens - some.num_documents, abs=2)  # a byte a token
    assert [some.chunk(i).tolist() for i in range(max_chunks)] == [whole.chunk(i).tolist() for i in range(max_chunks)]
    assert len(list((tmp_path / "some").glob("shard-*.bin"))) == len(some.metadata.shards)


def test_max_chunks_with_a_val_split_leaves_nothing_behind(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", make_texts(400))
    for max_chunks in range(5, 60, 6):
        out = tmp_path / f"out-{max_chunks}"
        settings: dict[str, Any] = {"tokenizer": "bytes", "chunk_size": 128, "task_bytes": 5000, "val_fraction": 0.2}
        store = prepare(source, out=out, max_chunks=max_chunks, **settings)
        assert store.num_chunks == max_chunks
        assert verify(out).problems == []


def test_the_output_may_lie_inside_the_input_folder(corpus: Path) -> None:
    first = prepare(corpus, out=corpus / "out", tokenizer="bytes")
    notes = Notes()
    second = prepare(corpus, out=corpus / "out", tokenizer="bytes", observer=notes)
    assert "nothing to do" in notes.notices[-1]
    assert first.num_documents == second.num_documents == 3501
    with pytest.raises(UsageError, match="all files lie in --out"):
        prepare(corpus / "out", out=corpus / "out", tokenizer="bytes")


def test_after_a_power_cut_checksums_are_compared(corpus: Path, tmp_path: Path) -> None:
    """A shard with the right name and size but without its bytes is done again when the machine was restarted."""
    out = tmp_path / "out"
    prepare(corpus, out=tmp_path / "whole", tokenizer="bytes", task_bytes=30_000)
    (corpus / "z.jsonl").write_text("{broken")
    with pytest.raises(DataRejected):
        prepare(corpus, out=out, tokenizer="bytes", task_bytes=30_000, max_reject_rate=0)
    shard = out / "shard-00002.bin"
    good = shard.read_bytes()
    shard.write_bytes(bytes(len(good)))
    (out / ".headrace" / "boot").write_text("another boot")
    notes = Notes()
    prepare(corpus, out=out, tokenizer="bytes", task_bytes=30_000, max_reject_rate=1, observer=notes)
    tasks = notes.seen[-1].tasks
    assert f"{tasks - 1} of {tasks} tasks are done already" in notes.notices[0]
    assert shard.read_bytes() == good


def test_best_fit_plan_is_written(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", make_texts(300))
    store = prepare(source, out=tmp_path / "out", tokenizer="bytes", chunk_size=512, packing="best-fit")
    plan = load_plan(tmp_path / "out", 512)
    assert int(plan.pieces[:, 1].sum()) == store.total_tokens
    first = plan.chunk(0)
    assert sum(len(store.tokens(int(start), int(start + length))) for start, length in first) <= 512


def test_the_same_command_again_does_nothing(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    prepare(corpus, out=out, tokenizer="bytes")
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.*") if ".headrace" not in path.parts}
    notes = Notes()
    prepare(corpus, out=out, tokenizer="bytes", workers=7, observer=notes)
    assert "nothing to do" in notes.notices[-1]
    assert before == {path: path.stat().st_mtime_ns for path in before}


def test_other_settings_in_the_same_folder(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    prepare(corpus, out=out, tokenizer="bytes")
    with pytest.raises(UsageError, match=r"chunk_size: 2048 then, 64 now[\s\S]*--force"):
        prepare(corpus, out=out, tokenizer="bytes", chunk_size=64)
    (corpus / "c.txt").write_text("longer now " * 999)
    with pytest.raises(UsageError, match=r"c.txt: 1,350 bytes then, 10,989 bytes now"):
        prepare(corpus, out=out, tokenizer="bytes")
    store = prepare(corpus, out=out, tokenizer="bytes", chunk_size=64, force=True)
    assert store.chunk_size == 64


def test_force_deletes_only_its_own(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    prepare(corpus, out=out, tokenizer="bytes", task_bytes=20_000)
    (out / "notes.txt").write_text("mine")
    shards = len(list(out.glob("*.bin")))
    prepare(corpus, out=out, tokenizer="bytes", force=True)
    assert (out / "notes.txt").read_text() == "mine"
    assert len(list(out.glob("*.bin"))) < shards


def test_a_folder_that_holds_something_else(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "photos"
    out.mkdir()
    (out / "cat.png").write_bytes(b"meow")
    for force in (False, True):
        with pytest.raises(UsageError, match=r"holds something else \(cat.png\)"):
            prepare(corpus, out=out, tokenizer="bytes", force=force)
    assert [path.name for path in out.iterdir()] == ["cat.png"]


def test_out_below_a_file(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="cannot be made"):
        prepare(corpus, out=tmp_path / "file" / "out", tokenizer="bytes")
    with pytest.raises(UsageError, match="is a file"):
        prepare(corpus, out=tmp_path / "file", tokenizer="bytes")


def test_rejects_are_located_and_too_many_stop_the_run(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", make_texts(50))
    with open(source, "ab") as file:
        file.write(b'{"text": null}\n{broken\n{"text": 5}\n{"other": "x"}\n{"text": "\xff"}\n')
        file.write(b'{"text": "\\ud800"}\n{"text": "the last is good"}\n')
    with pytest.raises(DataRejected, match=r"6 of 57 records \(10.53%\)[\s\S]*line 51: [\s\S]*--max-reject-rate"):
        prepare(source, out=tmp_path / "out", tokenizer="bytes")
    notes = Notes()
    store = prepare(source, out=tmp_path / "out", tokenizer="bytes", max_reject_rate=0.2, observer=notes)
    assert "1 of 1 tasks are done already" in notes.notices[0]
    assert store.num_documents == 51
    assert store.decode(store.document(-1)[:-1]) == "the last is good"
    rejects = [json.loads(line) for line in (tmp_path / "out" / "rejects.jsonl").read_text().splitlines()]
    assert [reject["where"] for reject in rejects] == [f"line {n}" for n in range(51, 57)]
    assert store.metadata.rejects == 6


def test_empty_files_are_noted_but_do_not_stop_the_run(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.py").write_text("")
    (tmp_path / "in" / "b.py").write_text("x = 1\n")
    store = prepare(tmp_path / "in", out=tmp_path / "out", tokenizer="bytes")
    assert (store.num_documents, store.metadata.rejects) == (1, 0)
    assert "empty file" in (tmp_path / "out" / "rejects.jsonl").read_text()


def test_input_without_a_document(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("")
    with pytest.raises(DataRejected, match="not one document"):
        prepare(tmp_path / "a.jsonl", out=tmp_path / "out", tokenizer="bytes")


def test_progress_reaches_the_end(corpus: Path, tmp_path: Path) -> None:
    notes = Notes()
    store = prepare(corpus, out=tmp_path / "out", tokenizer="bytes", task_bytes=30_000, observer=notes)
    last = notes.seen[-1]
    assert last.tasks_done == last.tasks > 1
    assert last.input_bytes == last.total_input_bytes
    assert last.counts.documents == store.num_documents
    assert last.counts.tokens == store.total_tokens
    assert sum(last.stage_shares.values()) == pytest.approx(1.0)


def test_events_are_written(corpus: Path, tmp_path: Path) -> None:
    prepare(corpus, out=tmp_path / "out")
    events = [json.loads(line) for line in (tmp_path / "out/.headrace/events.jsonl").read_text().splitlines()]
    kinds = [event["kind"] for event in events]
    assert kinds[0] == "prepare_start"
    assert kinds[-1] == "prepare_done"
    assert "parity" in kinds


def test_nothing_of_the_run_is_in_the_result(corpus: Path, tmp_path: Path) -> None:
    """Engine, batch size and checks may differ; the bytes may not."""
    prepare(corpus, out=tmp_path / "a", task_bytes=20_000)
    prepare(corpus, out=tmp_path / "b", task_bytes=20_000, engine="reference", batch_size=3)
    prepare(corpus, out=tmp_path / "c", task_bytes=20_000, engine="fastokens", verify="full")
    assert content(tmp_path / "a") == content(tmp_path / "b") == content(tmp_path / "c")
