"""One plan in shares, as an array of jobs does it: the same bytes, whoever comes when."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest_pipeline import content, make_texts, write_jsonl
from headrace import PrepareConfig, prepare
from headrace.errors import Busy, DataRejected, HeadraceError, UsageError
from headrace.pipeline import run_share
from headrace.pipeline.plan import Task
from headrace.pipeline.progress import Silent
from headrace.pipeline.shares import ShareDone, ShareFolder, from_environment, ranges, share_of
from headrace.pipeline.workfolder import WorkFolder
from headrace.sources import Span
from headrace.storage import verify

GUIDE = Path(__file__).parents[2] / "docs" / "scaling.md"
SETTINGS: dict[str, Any] = {"tokenizer": "bytes", "task_bytes": 60_000, "val_fraction": 0.1}
Headrace = Callable[..., "subprocess.CompletedProcess[str]"]


class Notes(Silent):
    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)


class StopAfter(Silent):
    """Ctrl-C when so many tasks are done."""

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks

    def progress(self, progress: Any) -> None:
        if progress.tasks_done >= self._tasks:
            raise KeyboardInterrupt


def share(source: Path, out: Path, index: int, count: int, observer: Any = None, **settings: Any) -> ShareDone:
    options = {**SETTINGS, **settings}
    return run_share(PrepareConfig(source=source, out=out, task_index=index, task_count=count, **options), observer)


def whole(source: Path, out: Path, **settings: Any) -> dict[str, str]:
    prepare(source, out=out, **{**SETTINGS, **settings})
    return content(out)


# Results


@pytest.mark.parametrize("settings", [{}, {"max_chunks": 60}, {"packing": "best-fit"}, {"tokenizer": "headrace-32k"}])
def test_the_same_bytes_as_one_run(corpus: Path, tmp_path: Path, settings: dict[str, Any]) -> None:
    out = tmp_path / "out"
    left = [share(corpus, out, index, 3, **settings).tasks_left for index in (2, 0, 1)]
    assert left[0] > left[1] > left[2] == 0
    assert not (out / "metadata.json").exists()
    prepare(corpus, out=out, finish=True, **{**SETTINGS, **settings})
    assert content(out) == whole(corpus, tmp_path / "whole", **settings)
    assert verify(out).problems == []
    assert not list((out / ".headrace").glob("part-*"))


def test_more_shares_than_tasks(corpus: Path, tmp_path: Path) -> None:
    notes = Notes()
    done = [share(corpus, tmp_path / "out", index, 40, notes) for index in range(40)]
    assert sum(one.tasks == 0 for one in done) > 0
    assert any("has no task" in notice for notice in notes.notices)
    prepare(corpus, out=tmp_path / "out", finish=True, **SETTINGS)
    assert content(tmp_path / "out") == whole(corpus, tmp_path / "whole")


def test_a_stopped_share_goes_on(corpus: Path, tmp_path: Path) -> None:
    out, notes = tmp_path / "out", Notes()
    with pytest.raises(KeyboardInterrupt):
        share(corpus, out, 0, 2, StopAfter(2))
    share(corpus, out, 0, 2, notes)
    assert re.match(r"Going on: 2 of \d+ tasks are done already", notes.notices[0])
    share(corpus, out, 1, 2)
    prepare(corpus, out=out, finish=True, **SETTINGS)
    assert content(out) == whole(corpus, tmp_path / "whole")


def test_shares_after_the_finish_do_nothing(corpus: Path, tmp_path: Path) -> None:
    out, notes = tmp_path / "out", Notes()
    share(corpus, out, 0, 1)
    prepare(corpus, out=out, finish=True, **SETTINGS)
    assert share(corpus, out, 0, 1, notes).tasks_left == 0
    assert "nothing to do" in notes.notices[-1]


def test_a_whole_run_goes_on_with_shares(corpus: Path, tmp_path: Path) -> None:
    out, notes = tmp_path / "out", Notes()
    share(corpus, out, 1, 2)
    prepare(corpus, out=out, observer=notes, **SETTINGS)
    assert "Going on" in notes.notices[0]
    assert content(out) == whole(corpus, tmp_path / "whole")


# The finish


def test_the_finish_names_what_is_missing_and_the_commands_for_it(
    corpus: Path, tmp_path: Path, headrace: Headrace
) -> None:
    out, options = tmp_path / "out", ["--tokenizer", "bytes", "--task-bytes", "60000", "--val-fraction", "0.1"]
    headrace("prepare", corpus, "--out", out, *options, "--task-index", 1, "--task-count", 4)
    failed = headrace("prepare", corpus, "--out", out, *options, "--finish", check=1)
    assert "tasks are not done: " in failed.stderr
    assert "--task-index 0,2-3." in failed.stderr
    commands = re.findall(r"(headrace prepare .*)", failed.stderr)
    assert len(commands) == 4
    for command in commands:  # those of the three shares, then the finish itself
        headrace(*shlex.split(command)[1:])
    assert content(out) == whole(corpus, tmp_path / "whole")


def test_a_finish_without_any_share(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(
        HeadraceError, match=r"tasks are not done: 0-\d+\. No share has been begun[\s\S]*--task-index I"
    ):
        prepare(corpus, out=tmp_path / "out", finish=True, **SETTINGS)


def test_what_an_engine_made_that_another_share_found_wrong_is_missing(corpus: Path, tmp_path: Path) -> None:
    out, settings = tmp_path / "out", {"tokenizer": "headrace-32k"}
    for index in range(2):
        share(corpus, out, index, 2, **settings)
    WorkFolder(out).ban_engine("gigatoken")
    with pytest.raises(HeadraceError, match=r"They are those of --task-index 0-1"):
        prepare(corpus, out=out, finish=True, **{**SETTINGS, **settings})
    for index in range(2):
        assert share(corpus, out, index, 2, **settings).tasks > 0
    store = prepare(corpus, out=out, finish=True, **{**SETTINGS, **settings})
    assert store.num_documents > 0
    assert content(out) == whole(corpus, tmp_path / "whole", **settings)


def test_an_engine_wrong_at_the_gate_of_one_share_is_banned_for_all(corpus: Path, tmp_path: Path) -> None:
    folder = ShareFolder(tmp_path / "out", 0, 2, tmp_path / "tokenizer")
    folder.create()
    folder.note_gate(frozenset({"fastokens"}), frozenset({"gigatoken"}))
    assert WorkFolder(tmp_path / "out").banned_engines() == {"gigatoken"}
    assert WorkFolder(tmp_path / "out").trusted_engines() == {"fastokens"}


def test_rejects_count_over_all_shares(tmp_path: Path) -> None:
    """One file is half bad, which is too much for its share but not for the whole."""
    bad = [{"a": 1}] * 30
    good = write_jsonl(tmp_path / "good.jsonl", make_texts(1500))
    (tmp_path / "bad.jsonl").write_text("".join(f"{line}\n".replace("'", '"') for line in bad))
    sources, out = [tmp_path / "bad.jsonl", good], tmp_path / "out"
    for index in range(5):
        run_share(PrepareConfig(source=sources, out=out, task_index=index, task_count=5, **SETTINGS))
    with pytest.raises(DataRejected, match=r"30 of 1,530 records[\s\S]*--max-reject-rate"):
        prepare(sources, out=out, finish=True, **SETTINGS)
    prepare(sources, out=out, finish=True, max_reject_rate=0.1, **SETTINGS)
    prepare(sources, out=tmp_path / "whole", max_reject_rate=0.1, **SETTINGS)
    assert content(out) == content(tmp_path / "whole")
    assert len((out / "rejects.jsonl").read_text().splitlines()) == 30


# Others in the same folder


def test_who_excludes_whom(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first, again, second = (ShareFolder(out, index, 9, tmp_path / "tokenizer") for index in (3, 3, 4))
    run = WorkFolder(out)
    run.create()
    with first.locked(), second.locked():
        with pytest.raises(Busy, match=rf"Share 3 of .* is being done by process {os.getpid()} on "), again.locked():
            pass
        with pytest.raises(Busy, match=rf"share 3 \(process {os.getpid()} on .*\), share 4 \(process"), run.locked():
            pass
    with run.locked(), pytest.raises(Busy, match=f"is being written by process {os.getpid()}"), first.locked():
        pass
    with first.locked():
        pass


def test_shares_with_other_settings_are_refused(corpus: Path, tmp_path: Path) -> None:
    share(corpus, tmp_path / "out", 0, 2)
    with pytest.raises(UsageError, match=r"val_fraction: 0\.1 then, 0\.2 now"):
        share(corpus, tmp_path / "out", 1, 2, val_fraction=0.2)


def test_results_of_another_plan_are_not_believed(corpus: Path, tmp_path: Path) -> None:
    """Two shares with different settings that began at the same moment: the later plan.json counts."""
    out = tmp_path / "out"
    share(corpus, out, 0, 2, val_fraction=0.5)
    (out / ".headrace" / "plan.json").unlink()
    share(corpus, out, 1, 2)
    with pytest.raises(HeadraceError, match="tasks are not done"):
        prepare(corpus, out=out, finish=True, **SETTINGS)
    share(corpus, out, 0, 2)
    prepare(corpus, out=out, finish=True, **SETTINGS)
    assert content(out) == whole(corpus, tmp_path / "whole")


def test_after_a_power_cut_only_what_was_synced_is_believed(corpus: Path, tmp_path: Path) -> None:
    """A share that came to its end is on the disk; of one that did not, the checksums are compared."""
    out = tmp_path / "out"
    share(corpus, out, 0, 2)
    with pytest.raises(KeyboardInterrupt):
        share(corpus, out, 1, 2, StopAfter(2))
    done = sorted(path.name for path in (out / ".headrace").glob("synced-*"))
    assert done == ["synced-00000.json"]
    synced = {int(number) for number in re.findall(r"\d+", (out / ".headrace" / done[0]).read_text())}
    results = {int(path.name[5:10]) for path in (out / ".headrace").glob("task-*[0-9].json")}
    lost = min(results - synced)
    shard = out / f"shard-{lost:05d}.bin"
    shard.write_bytes(bytes(shard.stat().st_size))
    for boot in (out / ".headrace").glob("boot-*"):
        boot.write_text("another boot")
    share(corpus, out, 1, 2)
    prepare(corpus, out=out, finish=True, **SETTINGS)
    assert content(out) == whole(corpus, tmp_path / "whole")
    assert verify(out).problems == []


# Options


def test_tasks_are_dealt_evenly_and_once() -> None:
    sizes = [256, 44] * 40 + [7, 256, 1]
    tasks = [Task(index, [Span("a.jsonl", "jsonl", size)]) for index, size in enumerate(sizes)]
    for count in (1, 2, 7, 64, 100):
        shares = [share_of(tasks, index, count) for index in range(count)]
        assert sorted(task.index for one in shares for task in one) == list(range(len(tasks)))
        weights = [sum(task.size for task in one) for one in shares]
        assert max(weights) - min(weights) <= max(sizes)


def test_ranges() -> None:
    assert ranges([0, 1, 2, 5, 7, 8]) == "0-2,5,7-8"


def test_what_the_array_job_says() -> None:
    slurm = {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "8"}
    assert from_environment(None, None, slurm) == (None, None)  # an array may well be one of whole runs
    assert from_environment(None, 64, slurm) == (3, 64)
    assert from_environment(5, None, slurm) == (5, 8)
    assert from_environment(5, 6, slurm) == (5, 6)
    assert from_environment(None, 4, {"JOB_COMPLETION_INDEX": "0"}) == (0, 4)
    assert from_environment(None, 4, {}) == (None, 4)
    with pytest.raises(UsageError, match="SLURM_ARRAY_TASK_ID='x' is no number"):
        from_environment(None, 4, {"SLURM_ARRAY_TASK_ID": "x"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--task-index", "4", "--task-count", "4"], "from 0 to 3"),
        (["--task-count", "4"], "needs --task-index"),
        (["--task-index", "1"], "needs --task-count"),
        (["--task-index", "1", "--task-count", "2", "--finish"], "comes after all shares"),
        (["--task-index", "1", "--task-count", "2", "--force"], "other shares have made"),
        (["--finish", "--force"], "other shares have made"),
    ],
)
def test_options_that_do_not_fit(
    corpus: Path, tmp_path: Path, headrace: Headrace, options: list[str], message: str
) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "JOB_"))}
    failed = headrace("prepare", corpus, "--out", tmp_path / "out", *options, check=2, env=environment)
    assert message in failed.stderr
    assert not (tmp_path / "out").exists()


def test_a_share_makes_no_dataset(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="run_share"):
        prepare(corpus, out=tmp_path / "out", task_index=0, task_count=2)


# The guide

SBATCH = '''#!{python}
"""What sbatch does with the options of the guide: runs the script once for each number, all at the same time."""
import os, re, subprocess, sys
arguments = sys.argv[1:]
if "--wrap" in arguments:
    sys.exit(subprocess.run(["sh", "-c", arguments[arguments.index("--wrap") + 1]]).returncode)
script = arguments[-1]
first, last = map(int, re.search(r"^#SBATCH --array=(\\d+)-(\\d+)$", open(script).read(), re.M).groups())
jobs = []
for number in range(first, last + 1):
    environment = {{**os.environ, "SLURM_ARRAY_TASK_ID": str(number), "SLURM_ARRAY_TASK_COUNT": str(last - first + 1)}}
    jobs.append(subprocess.Popen(["bash", script], env=environment, stdout=sys.stderr))
failed = [job for job in jobs if job.wait()]
print(4711)
sys.exit(len(failed))
'''


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the guide calls the shared one, with `headrace` and `sbatch` on the path."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "headrace").write_text(f'#!/bin/sh\nexec {sys.executable} -m headrace "$@"\n')
    (tmp_path / "bin" / "sbatch").write_text(SBATCH.format(python=sys.executable))
    for program in (tmp_path / "bin").iterdir():
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    shared = tmp_path / "shared"
    (shared / "text").mkdir(parents=True)
    for number in range(6):  # 12 MB, which is two tasks: some shares have none
        write_jsonl(shared / "text" / f"{number}.jsonl", make_texts(9000, number * 9000))
    return shared


def blocks(language: str) -> list[str]:
    section = GUIDE.read_text(encoding="utf-8").split("## Arrays\n")[1].split("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", section, re.M | re.S)


def equals_a_local_run(place: Path) -> bool:
    prepare(place / "text", out=place / "local")
    expected, found = content(place / "local"), content(place / "tokens")
    return found == expected and len(found) > 4


def test_the_sbatch_script_of_the_guide(place: Path) -> None:
    script, submit = blocks("bash")
    (place / "share.sh").write_text(script)
    subprocess.run(["bash", "-e", "-c", submit], cwd=place, check=True, timeout=300)
    assert equals_a_local_run(place)


def jobs_of_the_guide() -> Iterator[dict[str, Any]]:
    for block in blocks("yaml"):
        yield yaml.safe_load(block)


def test_the_kubernetes_jobs_of_the_guide(place: Path) -> None:
    shares, finish = jobs_of_the_guide()
    spec, container = shares["spec"], shares["spec"]["template"]["spec"]["containers"][0]
    assert (shares["apiVersion"], shares["kind"], spec["completionMode"]) == ("batch/v1", "Job", "Indexed")
    assert spec["completions"] == int(container["command"][container["command"].index("--task-count") + 1])
    running = [
        subprocess.Popen(container["command"], cwd=place, env={**os.environ, "JOB_COMPLETION_INDEX": str(index)})
        for index in range(spec["completions"])
    ]
    assert [job.wait(timeout=300) for job in running] == [0] * len(running)
    last = finish["spec"]["template"]["spec"]["containers"][0]
    assert last["workingDir"] == container["workingDir"]
    subprocess.run(last["command"], cwd=place, check=True, timeout=300)
    assert equals_a_local_run(place)
