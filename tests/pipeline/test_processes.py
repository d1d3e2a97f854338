"""prepare as a user runs it, in worker processes: the same bytes whatever happens on the way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest_pipeline import content, make_texts, write_jsonl
from headrace import TokenStore

Headrace = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Above 8 MiB, where a run uses processes."""
    return write_jsonl(tmp_path_factory.mktemp("large") / "large.jsonl", make_texts(45_000))


@pytest.fixture(scope="module")
def expected(large: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("expected") / "out"
    arguments = command(large, out, workers=1)
    subprocess.run(arguments, check=True, capture_output=True)
    return content(out)


def command(source: Path, out: Path, workers: int = 2, *more: str) -> list[str]:
    options = ["--val-fraction", "0.05", "--task-bytes", "500000", "--workers", str(workers), *more]
    return [sys.executable, "-m", "headrace", "prepare", str(source), "--out", str(out), *options]


def slowly(source: Path, out: Path, workers: int = 2) -> list[str]:
    """With the reference engine, so that a run can be met in the middle even on a busy machine."""
    return command(source, out, workers, "--engine", "reference")


def results(out: Path) -> int:
    return len(list((out / ".headrace").glob("task-*[0-9].json")))


def wait_for(ready: Callable[[], Any], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.005)


def workers_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in children.read_text().split()] if children.exists() else []


def test_the_corpus_is_large_enough(large: Path) -> None:
    assert large.stat().st_size > 8 << 20


@pytest.mark.parametrize("workers", [2, 3])
def test_the_same_bytes_for_any_number_of_workers(
    large: Path, tmp_path: Path, expected: dict[str, str], workers: int
) -> None:
    subprocess.run(command(large, tmp_path / "out", workers), check=True, capture_output=True)
    assert content(tmp_path / "out") == expected
    assert len(TokenStore(tmp_path / "out").metadata.shards) > 30


@pytest.mark.parametrize("after_tasks", [0, 1, 7, 16])
def test_killed_at_any_moment_it_goes_on(
    large: Path, tmp_path: Path, expected: dict[str, str], after_tasks: int
) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(slowly(large, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: (out / ".headrace" / "plan.json").exists() and results(out) >= after_tasks)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "metadata.json").exists()
    done = subprocess.run(command(large, out), check=True, capture_output=True, text=True)
    if after_tasks:
        assert "Going on:" in done.stderr
    assert content(out) == expected


def test_killed_many_times_it_still_ends_with_the_same_bytes(
    large: Path, tmp_path: Path, expected: dict[str, str]
) -> None:
    """Kills at arbitrary moments, not at task boundaries; a half-written shard must never be believed."""
    out = tmp_path / "out"
    for number in range(6):
        process = subprocess.Popen(command(large, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.35 + 0.13 * number)
        process.kill()
        process.wait()
    subprocess.run(command(large, out, 3), check=True, capture_output=True)
    assert content(out) == expected


def test_a_worker_left_over_from_a_killed_run_does_no_harm(
    large: Path, tmp_path: Path, expected: dict[str, str]
) -> None:
    """It may go on for a moment beside the worker that does its task again."""
    out = tmp_path / "out"
    process = subprocess.Popen(slowly(large, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: results(out) >= 2)
    orphans = workers_of(process.pid)
    for orphan in orphans:
        os.kill(orphan, signal.SIGSTOP)
    process.kill()
    process.wait()
    second = subprocess.Popen(command(large, out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: workers_of(second.pid))
    for orphan in orphans:
        os.kill(orphan, signal.SIGCONT)
    _, errors = second.communicate(timeout=120)
    assert second.returncode == 0, errors
    assert content(out) == expected
    wait_for(lambda: not any(Path(f"/proc/{orphan}").exists() for orphan in orphans))


def test_a_dead_worker_is_replaced_and_its_task_done_again(
    large: Path, tmp_path: Path, expected: dict[str, str]
) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(slowly(large, out), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: results(out) >= 3)
    victims = workers_of(process.pid)
    assert victims
    os.kill(victims[0], signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert content(out) == expected


def test_a_task_that_kills_its_worker_again_and_again_is_named(large: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen(slowly(large, out, 1), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: results(out) >= 2)
    killed: set[int] = set()
    while process.poll() is None and len(killed) < 50:
        for worker in workers_of(process.pid):
            if worker not in killed:
                killed.add(worker)
                os.kill(worker, signal.SIGKILL)
        time.sleep(0.01)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1, errors
    assert "its worker was ended by SIGKILL, 3 times over" in errors
    assert "large.jsonl" in errors
    assert results(out) >= 2


def test_ctrl_c_and_sigterm_say_how_to_go_on(large: Path, tmp_path: Path, expected: dict[str, str]) -> None:
    out = tmp_path / "out"
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 75)):
        process = subprocess.Popen(slowly(large, out, 1), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        before = results(out)
        wait_for(lambda before=before: results(out) > before)
        workers = workers_of(process.pid)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, "run the same command again" in errors) == (code, True), errors
        assert "Traceback" not in errors
        assert not any(Path(f"/proc/{worker}").exists() for worker in workers)
    subprocess.run(command(large, out), check=True, capture_output=True)
    assert content(out) == expected


def test_two_writers_on_one_folder(large: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = subprocess.Popen(slowly(large, out, 1), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: (out / ".headrace" / "plan.json").exists())
    second = subprocess.run(command(large, out, 1), capture_output=True, text=True)
    assert second.returncode == 1
    assert f"is being written by process {first.pid}" in second.stderr
    assert first.wait() == 0


def test_a_wrong_engine_found_half_way_costs_only_time(large: Path, tmp_path: Path, expected: dict[str, str]) -> None:
    """A gigatoken that passes the gate but is wrong on one document far inside: all its work is done again."""
    out = tmp_path / "out"
    environment = with_gigatoken(tmp_path, WRONG_GIGATOKEN, on=b"Document 31337")
    arguments = command(large, out, 2, "--verify", "full", "--engine", "gigatoken")
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "gigatoken was wrong: it differs from the reference on 'Document 31337" in done.stderr
    assert content(out) == expected
    events = [json.loads(line) for line in (out / ".headrace/events.jsonl").read_text().splitlines()]
    assert [event["engine"] for event in events if event["kind"] == "engine_differs"] == ["gigatoken"]


def test_tasks_begun_before_the_gate_are_thrown_away_when_it_refuses_their_engine(
    large: Path, tmp_path: Path, expected: dict[str, str]
) -> None:
    """A gigatoken that is wrong on many documents, in a run that checks none: the gate alone can see it."""
    out = tmp_path / "out"
    environment = with_gigatoken(tmp_path, WRONG_GIGATOKEN, on=b"Document 1")
    done = subprocess.run(command(large, out, 2, "--verify", "none"), capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "gigatoken is left out: it differs on 'Document 1'" in done.stderr
    assert "Tokenizing with fastokens: exact on" in done.stderr
    assert content(out) == expected


def test_what_an_untried_engine_made_before_a_kill_is_not_believed(
    large: Path, tmp_path: Path, expected: dict[str, str]
) -> None:
    """The wrong shards of a run that was killed before its gate had decided."""
    out = tmp_path / "out"
    environment = with_gigatoken(tmp_path, WRONG_GIGATOKEN, on=b"Document 1")
    arguments = command(large, out, 2, "--verify", "none")
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    wait_for(lambda: results(out) >= 1 or process.poll() is not None)
    process.kill()
    process.wait()
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert content(out) == expected


def test_an_engine_that_crashes_its_workers_gives_way_to_the_reference(large: Path, tmp_path: Path) -> None:
    environment = with_gigatoken(tmp_path, CRASHING_GIGATOKEN, parent=os.getpid())
    arguments = [*command(large, tmp_path / "out"), "--task-bytes", "9000000"]
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment)
    # Twice it dies with the engine that crashes; the third attempt is made with the reference, which does not.
    assert done.returncode == 0, done.stderr


def test_no_space_left(large: Path, tmp_path: Path) -> None:
    """A real full disk: a small tmpfs. Needs the right to mount."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs root to mount a small disk")
    try:
        out = disk / "out"
        done = subprocess.run(command(large, out), capture_output=True, text=True)
        assert done.returncode == 1
        assert "No space left" in done.stderr
        assert "run the same command again" in done.stderr
        assert "Traceback" not in done.stderr
        finished = results(out)
        assert finished > 0
        subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
        again = subprocess.run(command(large, out), capture_output=True, text=True)
        assert again.returncode == 0, again.stderr
        assert f"Going on: {finished} of" in again.stderr
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_script_without_a_main_guard(large: Path, tmp_path: Path, expected: dict[str, str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import headrace as hr\n"
        f"store = hr.prepare({str(large)!r}, out={str(tmp_path / 'out')!r}, workers=2, val_fraction=0.05, "
        "task_bytes=500_000)\nprint(store.num_documents)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert content(tmp_path / "out") == expected


def with_gigatoken(folder: Path, source: str, **values: object) -> dict[str, str]:
    """An environment in which another module stands before the real gigatoken."""
    import gigatoken

    (folder / "fake").mkdir()
    real = str(Path(str(gigatoken.__file__)).parent.parent)
    (folder / "fake" / "gigatoken.py").write_text(source.format(real=real, **values))
    return {**os.environ, "PYTHONPATH": str(folder / "fake")}


LOAD_REAL = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location(
    "gigatoken", {real!r} + "/gigatoken/__init__.py", submodule_search_locations=[{real!r} + "/gigatoken"])
module = importlib.util.module_from_spec(spec)
sys.modules["gigatoken"] = module
spec.loader.exec_module(module)
"""

WRONG_GIGATOKEN = (
    LOAD_REAL
    + """
class Backend:
    def __init__(self, backend):
        self._backend = backend
    def encode(self, text):
        ids = self._backend.encode(text)
        return ids[::-1].copy() if {on!r} in text else ids

class Tokenizer(module.Tokenizer):
    @classmethod
    def from_json(cls, data):
        tokenizer = module.Tokenizer.from_json(data)
        return type("Wrapped", (), {{"backend": Backend(tokenizer.backend)}})()

sys.modules["gigatoken"] = type("Fake", (), {{"Tokenizer": Tokenizer}})
"""
)

CRASHING_GIGATOKEN = (
    LOAD_REAL
    + """
import os
if os.getppid() != {parent}:  # in a worker, not in the command itself
    class Backend:
        def encode(self, text):
            os.kill(os.getpid(), 11)
    class Tokenizer:
        backend = Backend()
        from_json = staticmethod(lambda data: Tokenizer)
    sys.modules["gigatoken"] = type("Fake", (), {{"Tokenizer": Tokenizer}})
"""
)
