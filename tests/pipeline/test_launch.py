"""Workers that start before the run is planned: how many, what that imports, and that none is left over."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from headrace.errors import UsageError, WorkerDied
from headrace.pipeline import PrepareConfig, launch, run_prepare
from headrace.pipeline.launch import Waiting, workers_ahead
from headrace.pipeline.local import Pool
from headrace.pipeline.plan import Task
from headrace.pipeline.results import Job
from headrace.sources import ReadOptions, Span

MIB = 1 << 20


def file_of(path: Path, size: int) -> Path:
    with open(path, "wb") as file:
        file.truncate(size)
    return path


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


@pytest.mark.parametrize(
    ("sizes", "settings", "expected"),
    [
        ([8 * MIB], {}, 0),  # done in the calling process
        ([20 * MIB], {}, 2),  # no more than tasks
        ([100 * MIB], {}, 4),
        ([5 * MIB, 5 * MIB], {}, 1),
        ([20 * MIB], {"task_bytes": MIB}, 4),
        ([20 * MIB], {"task_bytes": 40 * MIB}, 0),
    ],
)
def test_how_many_start_ahead(tmp_path: Path, sizes: list[int], settings: dict[str, int], expected: int) -> None:
    sources = [file_of(tmp_path / f"{number}.jsonl", size) for number, size in enumerate(sizes)]
    config = PrepareConfig(source=sources, out=tmp_path / "out", workers=4, **settings)
    assert workers_ahead(config) == expected


def test_none_start_ahead_for_what_only_the_plan_can_tell(tmp_path: Path) -> None:
    file_of(tmp_path / "a.jsonl", 100 * MIB)
    for source in (tmp_path, tmp_path / "*.jsonl", "finewebedu", "hf://datasets/a/b", tmp_path / "missing", "\0"):
        assert workers_ahead(PrepareConfig(source=source, out=tmp_path / "out", workers=4)) == 0


def test_none_start_ahead_where_nothing_is_left_to_do(tmp_path: Path) -> None:
    source, out = file_of(tmp_path / "a.jsonl", 100 * MIB), tmp_path / "out"
    out.mkdir()
    (out / "metadata.json").write_text("{}")
    assert workers_ahead(PrepareConfig(source=source, out=out, workers=2)) == 0
    assert workers_ahead(PrepareConfig(source=source, out=out, workers=2, force=True)) == 2


def test_nothing_heavy_is_imported_before_workers_start() -> None:
    code = "from headrace.pipeline import PrepareConfig, Progress, run_prepare; import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"headrace.pipeline.launch"} <= set(done.stdout.split())
    assert not {"numpy", "pyarrow", "tokenizers", "headrace.pipeline.run"} & set(done.stdout.split())


def test_waiting_processes_are_taken_first_and_the_rest_end() -> None:
    before, waiting = children(), Waiting()
    waiting.start(2)
    first = children() - before
    taken = waiting.take()
    assert taken.process.pid in first
    waiting.stop()
    assert children() - before == {taken.process.pid}
    another = waiting.take()
    assert another.process.pid not in first
    for worker in (taken, another):
        assert worker.process.stdin is not None
        worker.process.stdin.close()
        assert worker.process.wait(60) == 0  # a worker whose parent is gone ends by itself
        worker.close()


def test_a_run_that_is_refused_leaves_no_process_behind(tmp_path: Path) -> None:
    source = file_of(tmp_path / "a.jsonl", 20 * MIB)
    config = PrepareConfig(source=source, out=file_of(tmp_path / "out", 1), workers=2)
    assert workers_ahead(config) == 2
    before = children()
    with pytest.raises(UsageError, match="is a file"):
        run_prepare(config)
    assert children() == before


def test_what_a_dead_worker_said_is_told_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "WORKER", "import sys; sys.exit('no such module')")
    pool = Pool(job_in(tmp_path), 1, Waiting())
    with pytest.raises(WorkerDied, match=r"ended with exit code 1, 3 times over(.|\n)*It said last:\nno such module"):
        list(pool.run([Task(0, [Span("a.jsonl", "jsonl", 1)])], "reference"))
    logs = [path.read_text() for path in sorted(tmp_path.glob("worker-*.log"))]
    assert logs == ["no such module\n"] * 3


def job_in(folder: Path) -> Job:
    return Job(
        folder=str(folder),
        parts=str(folder),
        tokenizer="bytes",
        likely_engine=None,
        read=ReadOptions(),
        dtype="uint16",
        eos_id=None,
        bos_id=None,
        val_fraction=0.0,
        val_seed=0,
        verify="none",
        batch_size=None,
        sha256=False,
    )
