"""The stream and the end of the server, with a real server in a process of its own."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from conftest_dashboard import a_run, append, eval_event, recent, run_event, sample_event, step_event, write_run

PATIENCE = 60.0  # seconds; a busy machine is no failure


class Server:
    def __init__(self, runs: Path, *words: object) -> None:
        command = [sys.executable, "-m", "headrace", "dashboard", str(runs), "--data", str(runs.parent / "data")]
        self.process = subprocess.Popen([*command, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.address = self._address()

    def _address(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        if not line.startswith("Dashboard at "):
            raise AssertionError(line + self.process.communicate(timeout=PATIENCE)[1].decode())
        return line.removeprefix("Dashboard at ").strip().rstrip("/")

    def get(self, path: str) -> Any:
        return httpx.get(self.address + path, timeout=PATIENCE).raise_for_status().json()

    def wait(self) -> None:
        """Until it answers."""
        ends = time.monotonic() + PATIENCE
        while True:
            try:
                httpx.get(self.address + "/api/runs", timeout=PATIENCE)
                return
            except httpx.TransportError:
                assert time.monotonic() < ends
                time.sleep(0.05)

    def stop(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        self.process.send_signal(number)
        words = self.process.communicate(timeout=PATIENCE)[1].decode()
        return self.process.returncode, words


Start = Callable[..., Server]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Server] = []

    def make(runs: Path, *words: object) -> Server:
        server = Server(runs, *words)
        started.append(server)
        server.wait()
        return server

    yield make
    for server in started:
        server.process.kill()
        server.process.communicate()


@contextmanager
def listening(server: Server, query: str, **headers: str) -> Iterator[Iterator[tuple[str, Any]]]:
    with httpx.stream("GET", f"{server.address}/events?{query}", timeout=PATIENCE, headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield events_in(answer.iter_lines())


def events_in(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    kind = ""
    for line in lines:
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


def until(events: Iterator[tuple[str, Any]], wanted: str, test: Callable[[Any], bool] = lambda data: True) -> Any:
    ends = time.monotonic() + PATIENCE
    for kind, data in events:
        assert time.monotonic() < ends
        if kind == wanted and test(data):
            return data
    raise AssertionError(f"the stream ended before {wanted}")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_run(tmp_path / "runs" / "one", recent(a_run(500)))
    return tmp_path / "runs"


def test_a_run_is_followed_line_by_line(runs: Path, start: Start) -> None:
    server = start(runs)
    cursor = server.get("/api/run/one")["cursor"]
    with listening(server, f"view=run&name=one&cursor={cursor}") as events:
        assert next(events)[0] == "hello"
        append(runs / "one", step_event(510, t=time.time(), loss=1.5), eval_event(510), sample_event(510, "<b>"))
        told = until(events, "points", lambda data: data.get("columns", {}).get("steps"))
        assert told["columns"]["steps"] == [510]
        assert told["columns"]["train_loss"] == [1.5]
        assert told["evals"]["steps"] == [510]
        assert told["samples"][0]["predicted"] == "<b>"
        assert told["summary"]["step"] == 510
        append(runs / "one", step_event(520, t=time.time()))
        assert until(events, "points", lambda data: data.get("columns"))["columns"]["steps"] == [520]


def test_a_cursor_outlives_the_server(runs: Path, start: Start) -> None:
    first = start(runs)
    known = first.get("/api/run/one")
    assert first.stop()[0] == 0
    append(runs / "one", step_event(510), step_event(520))
    second = start(runs)
    with listening(second, f"view=run&name=one&cursor={known['cursor']}") as events:
        assert next(events) == ("hello", {"instance": second.get("/api/runs")["instance"]})
        assert next(events)[1]["columns"]["steps"] == [510, 520]
    assert known["instance"] != second.get("/api/runs")["instance"]


def test_the_browsers_own_cursor_is_the_newer_one(runs: Path, start: Start) -> None:
    server = start(runs)
    old = server.get("/api/run/one")["cursor"]
    append(runs / "one", step_event(510))
    new = server.get("/api/run/one")["cursor"]
    append(runs / "one", step_event(520))
    with listening(server, f"view=run&name=one&cursor={old}", **{"last-event-id": new}) as events:
        assert until(events, "points", lambda data: data.get("columns"))["columns"]["steps"] == [520]


def test_a_run_that_went_back_is_fetched_anew(runs: Path, start: Start) -> None:
    server = start(runs)
    cursor = server.get("/api/run/one")["cursor"]
    with listening(server, f"view=run&name=one&cursor={cursor}") as events:
        until(events, "points")
        append(runs / "one", run_event(300, t=time.time()), step_event(310, t=time.time()))
        assert until(events, "reset") == {"name": "one"}
        assert server.get("/api/run/one")["columns"]["steps"][-2:] == [300, 310]
        append(runs / "one", step_event(320, t=time.time()))
        assert until(events, "points", lambda data: data.get("columns"))["columns"]["steps"] == [320]


def test_a_cursor_of_another_log_is_fetched_anew(runs: Path, start: Start) -> None:
    server = start(runs)
    with listening(server, "view=run&name=one&cursor=12ab.500") as events:
        assert next(events)[0] == "hello"
        assert next(events) == ("reset", {"name": "one"})


def test_the_list_tells_what_changed(runs: Path, start: Start) -> None:
    write_run(runs / "two", a_run(1000))
    server = start(runs)
    with listening(server, "view=runs") as events:
        assert next(events)[0] == "hello"
        assert {one["name"] for one in until(events, "runs")["runs"]} == {"one", "two"}
        append(runs / "one", step_event(510, t=time.time(), loss=1.25))
        changed = until(events, "runs")
        assert [(one["name"], one["loss"]) for one in changed["runs"]] == [("one", 1.25)]
        write_run(runs / "three", recent(a_run(100)))
        until(events, "runs", lambda data: "three" in [one["name"] for one in data["runs"]])
        for path in (runs / "two").iterdir():
            path.unlink()
        until(events, "runs", lambda data: data["gone"] == ["two"])


def test_runs_compared_are_followed(runs: Path, start: Start) -> None:
    write_run(runs / "a,b", recent(a_run(300)))
    server = start(runs)
    with listening(server, "view=compare&runs=one,a%2Cb") as events:
        first = [until(events, "points")["name"], until(events, "points")["name"]]
        assert first == ["one", "a,b"]
        append(runs / "one", step_event(510, t=time.time()))
        assert until(events, "points", lambda data: data.get("columns"))["columns"]["steps"] == [510]
        append(runs / "a,b", step_event(310, t=time.time()))
        told = until(events, "points", lambda data: data.get("columns"))
        assert (told["name"], told["columns"]["steps"]) == ("a,b", [310])


def test_many_listeners_are_told_the_same(runs: Path, start: Start) -> None:
    server = start(runs)
    with listening(server, "view=run&name=one") as first, listening(server, "view=run&name=one") as second:
        until(first, "points")
        until(second, "points")
        append(runs / "one", step_event(510, t=time.time()))
        for events in (first, second):
            assert until(events, "points", lambda data: data.get("columns"))["columns"]["steps"] == [510]


@pytest.mark.parametrize("query", ["view=nothing", "view=run", "view=compare"])
def test_a_view_that_is_none_is_refused(runs: Path, start: Start, query: str) -> None:
    answer = httpx.get(f"{start(runs).address}/events?{query}", timeout=PATIENCE)
    assert answer.status_code == 400
    assert answer.json()["error"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_whoever_listens(runs: Path, start: Start, number: signal.Signals) -> None:
    server = start(runs)
    with listening(server, "view=runs") as first, listening(server, "view=run&name=one") as second:
        next(first)
        next(second)
        code, words = server.stop(number)
        assert list(first) is not None  # the streams end, too
        assert list(second) is not None
    assert code == 0
    assert words == "Stopped.\n"


def test_a_taken_port_is_passed_over_or_named(runs: Path, start: Start) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(AssertionError, match=f"--port {port} on 127.0.0.1: address already in use"):
            Server(runs, "--port", port)
    first, second = start(runs), start(runs)
    assert first.address != second.address


def test_the_network_is_warned_about(runs: Path, start: Start) -> None:
    server = start(runs, "--host", "0.0.0.0", "--port", "0", "--allow-host", "trainer.lan")
    port = server.address.rpartition(":")[2]
    address = f"http://127.0.0.1:{port}/api/runs"
    assert httpx.get(address, headers={"host": "trainer.lan"}, timeout=PATIENCE).status_code == 200
    assert httpx.get(address, headers={"host": "evil.example"}, timeout=PATIENCE).status_code == 403
    _, words = server.stop()
    assert "everybody on the network" in words


def test_no_torch_is_needed(runs: Path) -> None:
    """Neither to start nor to answer."""
    code = """
import sys
sys.modules["torch"] = None
from pathlib import Path
from starlette.testclient import TestClient
from headrace.dashboard.app import make_app
with TestClient(make_app(Path(sys.argv[1]), Path("data")), base_url="http://localhost") as client:
    for path in ("/", "/run/one", "/api/run/one", "/api/compare?runs=one", "/data"):
        assert client.get(path).status_code == 200, path
"""
    subprocess.run([sys.executable, "-c", code, str(runs)], check=True, timeout=PATIENCE)
