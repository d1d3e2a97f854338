"""Predictions against the real planner, the real manifest and the real runs that bench/results holds."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import UsageError
from headrace.pipeline.config import LEAST_TASK, PrepareConfig
from headrace.pipeline.estimate import (
    INDEX_BYTES,
    MANIFEST_BYTES,
    MOST_MAPS,
    Files,
    Workload,
    advise_task_bytes,
    driver_load,
    make_tasks,
    predict,
    task_sizes,
    with_usual_start,
)
from headrace.pipeline.estimate_measure import measure
from headrace.pipeline.estimate_rates import FILE_BYTES, FIXED, TABLE, TOKENIZERS, profile_of
from headrace.pipeline.plan import make_plan
from headrace.pipeline.simulate import Cluster
from headrace.sources import ReadOptions, Source, SourceFile
from headrace.storage import Shard
from headrace.storage.index import encode_index
from headrace.tokenizers import load_tokenizer

RESULTS = Path(__file__).parents[2] / "bench" / "results"


def workload(
    text_bytes: float = 1e12, format: str = "jsonl", tokenizer: str = "headrace-32k", **more: object
) -> Workload:
    shares = {format: 1.0}
    return Workload(text_bytes=text_bytes, profiles={format: profile_of(tokenizer, format)}, shares=shares, **more)  # type: ignore[arg-type]


FITTED = ("2026-11-16-prepare.json", "headrace-32k", "jsonl")  # with one and two workers: FIXED is made from these
PARTS = 4  # files of the benchmark's corpus


def recorded() -> list[tuple[str, dict[str, Any]]]:
    found = [(path.name, json.loads(path.read_text())["rows"]) for path in sorted(RESULTS.glob("*-prepare*.json"))]
    return [(file, row) for file, rows in found for row in rows if row["contender"] == "headrace"]


def is_of_the_table(file: str, row: dict[str, Any]) -> bool:
    return any((one.file, one.tokenizer, one.format) == (file, row["tokenizer"], row["input"]) for one in TABLE)


def is_fitted(file: str, row: dict[str, Any]) -> bool:
    """Whether the constants were made from this very run, so that it says nothing of a prediction."""
    alone = is_of_the_table(file, row) and row["workers"] == 1
    return alone or (file, row["tokenizer"], row["input"]) == FITTED


def error_of(row: dict[str, Any]) -> float:
    """Predicted against measured seconds, above 0 where a run was faster than predicted."""
    name, text = row["input"], row["text_mb"] * 1e6
    load = workload(text, name, row["tokenizer"], file_bytes=text * FILE_BYTES[name] / PARTS)
    cluster = with_usual_start(Cluster(workers=row["workers"]), None)
    return predict(load, cluster).seconds / (row["text_mb"] / row["mb_per_s"]) - 1


def test_the_runs_that_the_constants_were_made_from_come_back() -> None:
    errors = [error_of(row) for file, row in recorded() if is_fitted(file, row)]
    assert len(errors) == len(TABLE) + 1
    assert errors == pytest.approx([0.0] * len(errors), abs=0.01)


def test_runs_of_the_same_days_that_were_not_used_are_predicted_within_15_percent() -> None:
    rows = [(file, row) for file, row in recorded() if is_of_the_table(file, row) and not is_fitted(file, row)]
    assert {(row["tokenizer"], row["input"], row["workers"]) for _, row in rows} == {
        ("headrace-32k", "parquet", 2),
        ("headrace-32k", "jsonl.zst", 2),
        ("mistral", "jsonl", 2),
        ("deepseek", "jsonl", 2),
    }
    assert all(abs(error_of(row)) <= 0.15 for _, row in rows)


def test_runs_of_another_day_and_version_are_further_off() -> None:
    """Not within 15%: half of them took 16 to 20% longer than is predicted. Kept, so that this stays known."""
    errors = [error_of(row) for file, row in recorded() if not is_of_the_table(file, row)]
    assert len(errors) == 8
    assert all(-0.21 <= error <= 0 for error in errors)
    assert sum(error < -0.15 for error in errors) == 4


def test_the_table_is_what_the_results_say() -> None:
    for one in TABLE:
        rows = json.loads((RESULTS / one.file).read_text())["rows"]
        (found,) = [
            row
            for row in rows
            if (row["tokenizer"], row["input"], row["workers"], row["contender"])
            == (one.tokenizer, one.format, 1, "headrace")
        ]
        assert (found["mb_per_s"], found["peak_mb"], found["tokens"]) == (one.mb_per_s, one.peak_mb, one.tokens)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["jsonl", "jsonl.zst", "jsonl.gz", "text"]),
    st.integers(0, 40),
    st.integers(1, 3_000),
    st.integers(0, 2_999),
    st.integers(1, 2_000),
)
def test_tasks_are_those_of_the_real_plan(format: str, count: int, size: int, last: int, target: int) -> None:
    files = Files(count, size, min(last, size - 1))
    if not files.number:
        return
    kind, _, compression = format.partition(".")
    sizes = [size] * files.count + ([files.last] if files.last else [])
    source = Source(
        "imagined",
        [SourceFile(f"{i}.{format}", one, kind, compression or None) for i, one in enumerate(sizes)],
        ReadOptions(separator="\n\n" if kind == "text" else None),
    )
    config = PrepareConfig(source="imagined", out="unused", tokenizer="bytes", task_bytes=target)
    plan = make_plan(config, source, load_tokenizer("bytes"))
    assert task_sizes(format, files, target) == [task.size for task in plan.tasks]


def test_parquet_tasks_hold_the_whole_file_in_pieces_of_about_the_target() -> None:
    sizes = task_sizes("parquet", Files(3, 10**9, 5 * 10**8), 1 << 28)
    assert sum(sizes) == 3_500_000_000
    assert max(sizes) < (1 << 28) * 1.1
    assert task_sizes("parquet", Files(5, 10**6, 0), 1 << 28) == [5 * 10**6]


@given(st.floats(1, 1e14))
def test_the_target_is_the_one_that_prepare_would_choose(text_bytes: float) -> None:
    load = workload(text_bytes)
    assert load.target == min(256 << 20, max(LEAST_TASK, load.input_bytes // 64))


@pytest.mark.parametrize("format", list(FILE_BYTES))
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_work_and_bytes_of_the_tasks_add_up(tokenizer: str, format: str) -> None:
    load = workload(3e12, format, tokenizer)
    tasks = make_tasks(load, 64)
    profile = load.profiles[format]
    assert sum(tasks.input_bytes) == load.input_bytes
    assert sum(tasks.seconds) == pytest.approx(3e6 / profile.core_mb_per_s / profile.crowded)
    written = load.tokens * load.itemsize + INDEX_BYTES * load.documents
    assert sum(tasks.moved) == pytest.approx(load.input_bytes + written)


def test_sizes_of_index_and_manifest_are_the_real_ones() -> None:
    documents = 1000
    assert len(encode_index(np.ones(documents, np.int32), np.dtype(np.uint16))) == 34 + documents * INDEX_BYTES + 8
    shard = Shard("shard-00000", 75_000_000, 49_000, 150_000_000, "0" * 32, "1" * 32)
    written = msgspec.json.format(msgspec.json.encode([[shard] * 100]), indent=2)
    assert len(written) / 100 == pytest.approx(MANIFEST_BYTES, rel=0.03)


def test_fifteen_trillion_tokens() -> None:
    profiles = {name: profile_of("headrace-32k", name) for name in ("parquet", "jsonl.zst")}
    ratio = profiles["parquet"].bytes_per_token
    load = Workload(text_bytes=15e12 * ratio, profiles=profiles, shares={"parquet": 0.8, "jsonl.zst": 0.2})
    found = predict(load, Cluster(workers=512, array=True), price=0.04)
    assert found.tokens == pytest.approx(15e12)
    assert found.output_bytes == pytest.approx(30e12, rel=0.02)
    assert found.ideal_seconds <= found.seconds < 1.2 * found.ideal_seconds
    assert found.cost == pytest.approx(found.seconds * 512 / 3600 * 0.04)
    assert found.read_bytes_per_s * (found.outcome.last_task) == pytest.approx(load.input_bytes)
    assert found.memory_bytes == 512 * 399e6
    assert found.memory_bytes_per_node == 64 * 399e6


def test_too_many_shards_for_a_process_bring_advice_that_helps() -> None:
    load = workload(100e12)
    advice = advise_task_bytes(load)
    assert advice is not None
    better = workload(100e12, task_bytes=advice)
    assert predict(better, Cluster(workers=1)).shards < MOST_MAPS
    assert advise_task_bytes(better) is None
    assert advise_task_bytes(workload(1e12)) is None


def test_whole_compressed_files_are_tasks_and_few_files_are_shared() -> None:
    assert task_sizes("jsonl.zst", Files(100, 10**9, 0), 1 << 28) == [10**9] * 100
    assert len(task_sizes("jsonl.zst", Files(4, 10**9, 0), 1 << 28)) == 16
    shared, alone = workload(1e9, "jsonl.zst", file_bytes=1e8), workload(1e9, "jsonl.zst", file_bytes=1e7)
    assert sum(make_tasks(shared, 2).seconds) == pytest.approx(sum(make_tasks(alone, 2).seconds) + 1.0)


def test_a_driver_that_cannot_follow_slows_its_workers_down_and_an_array_has_none() -> None:
    assert driver_load(Cluster(workers=64)) < 0.05
    assert driver_load(Cluster(workers=4096)) > 10
    assert driver_load(Cluster(workers=4096, array=True)) == 0
    load = workload(20e12)
    followed, array = (predict(load, Cluster(workers=1000, array=array)) for array in (False, True))
    assert followed.seconds / array.seconds == pytest.approx(driver_load(Cluster(workers=1000)), rel=0.1)


def test_the_usual_start() -> None:
    assert with_usual_start(Cluster(workers=64), None).start_seconds == FIXED
    assert with_usual_start(Cluster(workers=65), None).start_seconds == 30
    assert with_usual_start(Cluster(workers=65), 2.0).start_seconds == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: workload(0.5), "--bytes 0.5"),
        (lambda: workload(math.inf), "--bytes inf"),
        (lambda: workload(file_bytes=0.2), "--file-size 0.2"),
        (lambda: workload(task_bytes=0), "--task-bytes 0"),
        (lambda: workload(format="docx"), "--format docx"),
        (lambda: workload(tokenizer="gpt2"), re.escape("--tokenizer gpt2: its rate is not in the table")),
        (lambda: predict(workload(1e12, task_bytes=1000), Cluster(workers=1)), "larger --task-bytes"),
        (
            lambda: Workload(text_bytes=1e9, profiles={"jsonl": profile_of("mistral", "jsonl")}, shares={"jsonl": 0.5}),
            "the shares add up to 0.5",
        ),
    ],
)
def test_what_cannot_be_planned(make: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make()  # type: ignore[operator]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    words = ["water", "runs", "down", "the", "race", "and", "turns", "a", "wheel"]
    rng = np.random.default_rng(0)
    for part in range(3):
        lines = [" ".join(rng.choice(words, 200)) for _ in range(300)]
        (folder / f"{part}.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    return folder


def test_measuring_counts_what_is_there(texts: Path) -> None:
    profile, text_bytes = measure(str(texts), "bytes", seconds=5)
    lines = [json.loads(line)["text"] for path in texts.iterdir() for line in path.read_text().splitlines()]
    real = sum(map(len, lines))
    assert profile.format == "jsonl"
    assert text_bytes == pytest.approx(real, rel=0.01)
    assert profile.bytes_per_token == pytest.approx(real / (real + len(lines)), rel=0.01)  # one EOS each
    assert profile.bytes_per_document == pytest.approx(real / len(lines), rel=0.02)
    assert profile.core_mb_per_s > 0
    assert profile.itemsize == 2


def test_measuring_where_there_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text('{"text": ""}\n')
    with pytest.raises(UsageError, match="no text"):
        measure(str(tmp_path), "bytes", seconds=1)
