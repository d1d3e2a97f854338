"""Loading measured for real on small datasets, and what the figures mean with made-up ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from conftest_data import flat, made_up
from conftest_pipeline import make_texts, write_jsonl
from headrace import Loader, prepare
from headrace.diagnosis.data import DataConfig, diagnose_data
from headrace.diagnosis.data_cache import PageCache
from headrace.diagnosis.data_findings import RATES, Findings, findings_of, times, verdict, wait_share
from headrace.diagnosis.data_machine import Memory
from headrace.diagnosis.data_rounds import LEAST_ROUNDS, ROUNDS, Spread, rounds, spread
from headrace.diagnosis.data_timing import CopyTimer, Use, WarmTimer, from_start, populating
from headrace.diagnosis.report import Report, load_report
from headrace.errors import UsageError
from headrace.loading.memory import SHARE

QUICK: dict[str, Any] = {"seconds": 0.3, "seq_len": 64, "batch_size": 4}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_jsonl(folder / "tales.jsonl", make_texts(3000))
    prepare(folder / "tales.jsonl", out=folder / "tales", tokenizer="bytes", chunk_size=256, task_bytes=200_000)
    return folder / "tales"


# For real


def test_a_report_of_a_dataset(dataset: Path, tmp_path: Path) -> None:
    steps: list[str] = []
    report = diagnose_data(DataConfig(data=dataset, tokens_per_second=1000.0, **QUICK), steps.append)
    found = findings_of(report)
    assert (report.kind, report.subject, report.tokens_per_second) == ("data", str(dataset), 1000.0)
    assert (found.seq_len, found.batch_size, found.dtype) == (64, 4, "int64")
    assert found.bytes == sum(file.stat().st_size for file in dataset.glob("shard-*.bin"))
    assert found.shards == len(list(dataset.glob("shard-*.bin"))) > 1
    assert found.row_bytes == 65 * np.dtype(found.stored).itemsize
    assert found.access == "populate"
    for one in (found.warm, found.copy):
        assert 0 < one.low <= one.value <= one.high
        assert LEAST_ROUNDS <= one.rounds <= ROUNDS
    assert report.facts["warm_tokens_per_second"] == found.warm.value
    assert report.facts["warm_share_of_copy_limit"] == pytest.approx(found.warm.value / found.copy.value)
    (need,) = report.facts["needs"]
    assert need["warm_times"] == pytest.approx(found.warm.value / 1000)
    assert any("from memory, round 3" in step for step in steps)
    assert "does not wait" in report.verdict
    assert report.fixes == []
    report.save(tmp_path / "report.json")
    assert findings_of(load_report(tmp_path / "report.json")) == found


def test_what_is_cold_was_read_from_disk(dataset: Path) -> None:
    """Where pages can be dropped, the bytes that a batch needs come from the disk, and none of them twice."""
    report = diagnose_data(DataConfig(data=dataset, memory="random", **QUICK))
    found = findings_of(report)
    if found.cold is None:
        assert any(reason.startswith("Cold reading:") for reason in report.missing)
        pytest.skip(f"pages cannot be dropped here: {report.missing}")
    assert found.access == "random"
    assert found.sequential is not None
    assert found.random is not None
    assert found.cold.batches > 0
    assert found.cold.tokens_per_second.value > 0
    if found.cold.read_bytes is not None:
        assert 0 < found.cold.read_bytes * found.cold.batches <= 2 * found.bytes + (1 << 20)
    assert report.facts["cold_tokens_per_second"] == found.cold.tokens_per_second.value


def test_the_cache_can_be_left_alone(dataset: Path) -> None:
    for file in dataset.glob("*.bin"):
        file.read_bytes()
    cache = PageCache(sorted(dataset.glob("shard-*.bin")))
    report = diagnose_data(DataConfig(data=dataset, keep_cache=True, **QUICK))
    found = findings_of(report)
    assert found.cold is found.sequential is found.random is None
    assert "Cold reading: left out by --keep-cache." in report.missing
    assert "cold" not in report.verdict
    if cache.unseen is None:
        assert cache.resident() == cache.size


def test_a_dataset_in_memory_has_no_disk(dataset: Path) -> None:
    shm = Path("/dev/shm")
    if not os.access(shm, os.W_OK):
        pytest.skip("no /dev/shm")
    copy = shm / f"headrace-test-{os.getpid()}"
    shutil.copytree(dataset, copy)
    try:
        report = diagnose_data(DataConfig(data=copy, **QUICK))
    finally:
        shutil.rmtree(copy)
    found = findings_of(report)
    assert found.mount is not None
    assert found.mount.filesystem == "tmpfs"
    assert found.cold is None
    assert "file system in memory" in " ".join(report.missing)


def test_a_mixture(dataset: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(dataset, other)
    config = DataConfig(data={str(dataset): 0.8, str(other): 0.2}, keep_cache=True, **QUICK)
    found = findings_of(diagnose_data(config))
    assert found.names == [str(dataset), str(other)]
    assert found.shards == 2 * len(list(dataset.glob("shard-*.bin")))


def test_torch_is_not_needed(dataset: Path) -> None:
    code = (
        "import importlib.abc, sys\n"
        "class NoTorch(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'torch': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, NoTorch())\n"
        "from headrace.diagnosis.data import DataConfig, diagnose_data\n"
        f"report = diagnose_data(DataConfig(data={str(dataset)!r}, seconds=0.1, keep_cache=True))\n"
        "print(report.facts['warm_tokens_per_second'] > 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"seconds": 0.0}, "--seconds 0 cannot be"),
        ({"tokens_per_second": -1.0}, "--tokens-per-second -1 cannot be"),
        ({"tokens_per_second": 1.0, "run": Path("runs/x")}, "Leave one of them out"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        DataConfig(data="data/web", **settings)


# Timers


def test_a_warm_window_is_read_again(dataset: Path) -> None:
    loader = Loader(dataset, seq_len=64, batch_size=4)
    timer = WarmTimer(loader, 130, available=4 * 130 * 4 * 20)  # room for twenty batches
    timer.warm_up(60.0)
    assert timer.batches == 20 < loader.steps_per_epoch
    timer.round(0.001)
    assert loader.step == 21  # one to start with, and the window
    assert len(timer.found) == len(timer.minor) == 1
    loader.close()


def test_a_whole_epoch_goes_on_with_the_next(dataset: Path) -> None:
    loader = Loader(dataset, seq_len=64, batch_size=4)
    timer = WarmTimer(loader, 130, available=1 << 40)
    timer.warm_up(60.0)
    assert timer.batches == loader.steps_per_epoch == loader.step
    timer.round(1e-9)
    assert loader.step == 2 * loader.steps_per_epoch
    loader.close()


def test_a_round_from_the_start_ends_with_the_epoch(dataset: Path) -> None:
    def opened() -> Loader:
        return Loader(dataset, seq_len=64, batch_size=4)

    whole, first = from_start(opened, 60.0), from_start(opened, 0.0)
    assert whole.batches == opened().steps_per_epoch
    assert first.batches == 1
    assert first.first_seconds > 0
    assert whole.minor > 0


def test_the_copy_is_of_the_tokens() -> None:
    tokens = np.arange(100, dtype=np.uint16)
    timer = CopyTimer(tokens, (2, 5), np.dtype(np.int64))
    timer.round(1e-9)
    assert (timer._out == tokens[90:].reshape(2, 5)).all()
    assert timer.found[0] > 0


def test_what_a_process_has_read(tmp_path: Path) -> None:
    (tmp_path / "io").write_text("rchar: 5\nread_bytes: 4096\n")
    assert Use.now(tmp_path / "io").read_bytes == 4096
    assert Use.now(tmp_path / "none").read_bytes is None
    (tmp_path / "io").write_text("rchar: 5\n")
    assert Use.now(tmp_path / "io").read_bytes is None


def test_nobody_is_waited_for_when_nobody_reads() -> None:
    assert not populating(60.0)


def test_rounds() -> None:
    assert len(list(rounds(0.0))) == LEAST_ROUNDS
    assert len(list(rounds(1e9))) == ROUNDS
    assert spread([3.0, 1.0, 2.0, 9.0]) == Spread(2.5, 1.0, 9.0, 4)


# What it means


def test_a_step_waits_only_for_a_slower_loader() -> None:
    assert wait_share(100, 400) == 0
    assert wait_share(100, 100) == 0
    assert wait_share(100, 40) == pytest.approx(0.6)


def test_needs() -> None:
    rows = made_up(need=None).needs()
    assert [row["tokens_per_second"] for row in rows] == list(RATES) == [1e4, 1e5, 1e6, 1e7]
    assert [row["warm_times"] for row in rows] == pytest.approx([1e5, 1e4, 1e3, 1e2])
    assert [row["cold_wait"] for row in rows] == pytest.approx([0, 0, 0, 0.8])
    assert rows[0]["bytes_per_second"] == pytest.approx(1e4 * 4098 / 2048)
    assert made_up(cold=None).needs()[0]["cold_wait"] is None


def test_derived_figures() -> None:
    found = made_up(read=131_136.0)
    assert found.batch_bytes == 16 * 4098
    assert found.amplification == pytest.approx(2.0)
    assert found.share_of_copy == pytest.approx(0.8)
    assert found.crossing == pytest.approx(7 * 2048 / 1e9)
    assert found.reading == pytest.approx(4.0)
    assert made_up(read=None).amplification is None
    assert made_up(cold=None).reading is None


def test_it_fits_by_the_loaders_own_measure() -> None:
    edge = Memory(available=int(2_000_000_000 / SHARE), machine=1 << 40, limit=None)
    assert made_up(memory=edge).fits
    assert not made_up(memory=msgspec.structs.replace(edge, available=edge.available - 4)).fits


def test_what_is_lost_until_it_is_in_memory() -> None:
    """At 250 k of 1 M tokens/s a step waits three quarters of its time: of the epoch, or of the 4 s of reading."""
    by_rows = made_up(cold=250e3)
    assert by_rows.lost_at_start() == pytest.approx(0.75 * 1e9 / 250e3)
    assert made_up(cold=250e3, access="populate").lost_at_start() == pytest.approx(0.75 * 4.0)
    assert made_up(cold=2e6).lost_at_start() == 0
    assert made_up(cold=250e3, need=None).lost_at_start() is None
    assert made_up(cold=250e3, memory=Memory(10**9, 10**9, None)).lost_at_start() is None


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (made_up(), "does not wait for this data. The loader gives 1,000,000,000 tokens/s from memory"),
        (made_up(), "training needs 1,000,000: 1,000 times what is needed, and 2 times when the cache is cold."),
        (made_up(cold=400e3, access="populate"), "at first. The loader gives 1,000,000,000 tokens/s from memory"),
        (made_up(cold=400e3, access="populate"), "the step waits 60% of its time until the data are in memory: 2.4 s"),
        (made_up(cold=400e3, memory=Memory(10**9, 10**9, None)), "60% of its time, in every epoch"),
        (made_up(warm=flat(500e3)), "so a step waits 50% of its time."),
        (made_up(warm=flat(500e3), cold=100e3), "so a step waits 50% of its time, and 90% when cold."),
        (made_up(cold=None), "From a cold disk: not measured"),
        (made_up(need=None), "and 2,000,000 from a cold disk: training waits for this data only above 2,000,000"),
        (made_up(need=None, cold=None), "only above 1,000,000,000 tokens/s"),
    ],
)  # fmt: skip
def test_verdict(found: Findings, says: str) -> None:
    assert says in verdict(found)


@pytest.mark.parametrize(("factor", "said"), [(24_000, "24,000 times"), (3.21, "3.2 times"), (0.451, "0.45 times")])
def test_times(factor: float, said: str) -> None:
    assert times(factor) == said


def test_findings_come_back_from_a_report() -> None:
    found = made_up()
    report = Report(kind="data", subject="x", verdict="", facts={"measured": msgspec.to_builtins(found)})
    assert findings_of(report) == found
