"""prepare on a real Ray cluster of two nodes on loopback: the same bytes, with one of them killed in the middle."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from conftest_pipeline import content, make_texts, write_jsonl
from headrace import PrepareConfig, prepare
from headrace.errors import UsageError
from headrace.pipeline.command import command_of

GUIDE = Path(__file__).parents[2] / "docs" / "scaling.md"
SETTINGS: dict[str, Any] = {"val_fraction": 0.05, "task_bytes": 150_000, "engine": "reference"}
ENVIRONMENT = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}


def ray_is_here() -> bool:
    return importlib.util.find_spec("ray") is not None


class Node:
    """One raylet with what it needs, started in the foreground so that it can be ended by its number."""

    def __init__(self, folder: Path, ip: str, *options: str) -> None:
        self.log = open(folder / f"{ip}.log", "wb")  # noqa: SIM115 - closed by stop()
        fixed = ["--num-cpus=1", f"--object-store-memory={80 << 20}", f"--node-ip-address={ip}", "--block"]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *fixed, *options]
        environment = {**ENVIRONMENT, "RAY_TMPDIR": str(folder)}
        self._process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment)

    def processes(self) -> list[psutil.Process]:
        if self._process.poll() is not None:  # its number may be another's by now
            return []
        process = psutil.Process(self._process.pid)
        return [process, *process.children(recursive=True)]

    def at_work(self) -> bool:
        """Whether a task of Headrace runs here."""
        names = []
        for process in self.processes():
            try:
                names.append(" ".join(process.cmdline()))
            except psutil.Error:
                continue
        return any("ray::run_task" in name for name in names)

    def stop(self) -> None:
        """At once and for good, as when a machine loses its power."""
        processes = self.processes()
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()
        psutil.wait_procs(processes, timeout=30)
        self.log.close()


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def wait_for(ready: Callable[[], Any], what: str, seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, f"it did not come to that: {what}"
        time.sleep(0.02)


def answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


class Cluster:
    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        self.nodes = [Node(folder, "127.0.0.1", "--head", f"--port={port}", "--include-dashboard=false")]
        try:
            wait_for(lambda: answers(port), "the head answers")
            self.nodes.append(Node(folder, "127.0.0.2", f"--address={self.address}"))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        for node in reversed(self.nodes):
            node.stop()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="hr", ignore_cleanup_errors=True) as folder:  # sockets want a short path
        cluster = Cluster(Path(folder))
        try:
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_jsonl(tmp_path_factory.mktemp("source") / "text.jsonl", make_texts(12_000))


@pytest.fixture(scope="module")
def expected(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    out = tmp_path_factory.mktemp("expected") / "out"
    prepare(source, out=out, **SETTINGS)
    return content(out)


def start(cluster: Cluster, source: Path, out: Path, **settings: Any) -> subprocess.Popen[str]:
    config = PrepareConfig(source=source, out=out, on="ray", ray_address=cluster.address, **{**SETTINGS, **settings})
    words = shlex.split(command_of(config))[1:]
    return subprocess.Popen(
        [sys.executable, "-m", "headrace", *words], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )


def results(out: Path) -> int:
    return len(list((out / ".headrace").glob("task-*[0-9].json")))


@pytest.mark.slow
@pytest.mark.skipif(not ray_is_here(), reason="ray is not installed")
class TestOnTwoNodes:
    """In this order: the last one takes a node away."""

    def test_the_command_of_the_guide(self, cluster: Cluster, source: Path, tmp_path: Path) -> None:
        section = GUIDE.read_text(encoding="utf-8").split("## Ray\n")[1].split("\n## ")[0]
        (command,) = re.findall(r"^```sh\nheadrace (.*?)\n```$", section, re.M | re.S)
        (tmp_path / "text").mkdir()
        (tmp_path / "text" / "a.jsonl").write_bytes(source.read_bytes())
        environment = {**ENVIRONMENT, "RAY_ADDRESS": cluster.address}
        words = [sys.executable, "-m", "headrace", *shlex.split(command)]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        prepare(tmp_path / "text", out=tmp_path / "local")
        assert content(tmp_path / "tokens") == content(tmp_path / "local")

    def test_stopped_it_cancels_its_tasks_and_leaves_a_folder_that_goes_on(
        self, cluster: Cluster, source: Path, tmp_path: Path, expected: dict[str, str]
    ) -> None:
        """On the cluster again, and then without it."""
        out = tmp_path / "out"
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 75)):
            before = results(out)
            run = start(cluster, source, out, memory_per_task=50e6)
            wait_for(lambda before=before, run=run: results(out) > before or run.poll() is not None, "a task is done")
            run.send_signal(number)
            _, errors = run.communicate(timeout=120)
            assert (run.returncode, "run the same command again" in errors) == (code, True), errors
            assert "Traceback" not in errors
            assert ("Going on:" in errors) == (before > 0)
            wait_for(lambda: not any(node.at_work() for node in cluster.nodes), "no task runs on")
        assert 2 <= results(out) < sum(re.fullmatch(r"shard-\d+\.bin", name) is not None for name in expected)
        prepare(source, out=out, **SETTINGS)
        assert content(out) == expected

    def test_a_node_killed_in_the_middle(
        self, cluster: Cluster, source: Path, tmp_path: Path, expected: dict[str, str]
    ) -> None:
        out = tmp_path / "out"
        run = start(cluster, source, out)
        other = cluster.nodes[1]
        wait_for(lambda: (results(out) >= 3 and other.at_work()) or run.poll() is not None, "the second node works")
        assert run.poll() is None, run.communicate()
        killed_at = results(out)
        other.stop()
        _, errors = run.communicate(timeout=300)
        assert run.returncode == 0, errors
        assert killed_at < len(list(out.glob("shard-*.bin")))
        assert content(out) == expected
        assert not list((out / ".headrace").glob("task-*"))


@pytest.mark.slow
@pytest.mark.skipif(not ray_is_here(), reason="ray is not installed")
def test_no_cluster(source: Path, tmp_path: Path) -> None:
    """Also that --engine ray means the cluster."""
    words = ["prepare", str(source), "--out", str(tmp_path / "out"), "--engine", "ray", "--ray-address", "127.0.0.1:1"]
    done = subprocess.run([sys.executable, "-m", "headrace", *words], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 1
    assert "--ray-address 127.0.0.1:1: there is no Ray cluster that can be reached" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ray_address": "127.0.0.1:1"}, "pass --on ray"),
        ({"memory_per_task": 4e9}, "pass --on ray"),
        ({"on": "ray", "task_index": 0, "task_count": 2}, "does the whole plan"),
        ({"on": "ray", "cpus_per_task": 0}, "at least 1"),
        ({"on": "moon"}, "local, ray"),
    ],
)
def test_options_that_do_not_fit(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PrepareConfig(source="a", out="b", **settings)
