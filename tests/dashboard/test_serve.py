from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headrace.cli.main import cli
from headrace.dashboard import serve
from headrace.errors import MissingDependency, UsageError


@pytest.mark.parametrize("package", ["starlette", "uvicorn", "plotly"])
def test_a_missing_package_names_the_extra(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: Callable[..., Any] = serve.find_spec
    monkeypatch.setattr(serve, "find_spec", lambda name: None if name == package else found(name))
    result = CliRunner().invoke(cli, ["dashboard"])
    assert isinstance(result.exception, MissingDependency)
    assert f"{package!r}. Run: pip install 'headrace[dashboard]'" in str(result.exception)


def test_a_file_is_no_folder_of_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = CliRunner().invoke(cli, ["dashboard", str(tmp_path / "file")])
    assert isinstance(result.exception, UsageError)
    assert "is a file. Name a folder" in str(result.exception)


def test_help_loads_no_server() -> None:
    result = CliRunner().invoke(cli, ["dashboard", "--help"])
    assert result.exit_code == 0
    assert "--allow-host" in result.output
    assert "dashboard" in CliRunner().invoke(cli, ["--help"]).output


def test_the_next_free_port_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(serve, "PORT", port)
        with serve.open_port("127.0.0.1", None) as found:
            assert port < found.getsockname()[1] < port + serve.TRIED
            assert serve.address_of("127.0.0.1", found) == f"http://127.0.0.1:{found.getsockname()[1]}/"
        with pytest.raises(UsageError, match=f"--port {port} on 127.0.0.1: .* Leave --port out"):
            serve.open_port("127.0.0.1", port)
        monkeypatch.setattr(serve, "TRIED", 1)
        with pytest.raises(UsageError, match=f"No port from {port} to {port} can be had"):
            serve.open_port("127.0.0.1", None)


def test_a_host_that_is_none_is_named() -> None:
    with pytest.raises(UsageError, match=r"--host no\.such\.host\.invalid: .*127\.0\.0\.1"):
        serve.open_port("no.such.host.invalid", 0)


HERE = ("127.0.0.1", "127.9.9.9", "::1", "localhost")
ELSEWHERE = ("0.0.0.0", "::", "192.168.1.5", "trainer.lan", "localhost.evil.example")


@pytest.mark.parametrize("host", [*HERE, *ELSEWHERE])
def test_what_stays_on_this_machine(host: str) -> None:
    assert serve.is_loopback(host) is (host in HERE)


def test_every_address_of_the_machine_goes_by_its_name() -> None:
    assert serve.names_of("0.0.0.0") == ["0.0.0.0", socket.gethostname()]
    assert serve.names_of("192.168.1.5") == ["192.168.1.5"]
    with socket.socket(socket.AF_INET6) as six:
        try:
            six.bind(("::1", 0))
        except OSError:
            pytest.skip("there is no IPv6 here")
        assert serve.address_of("::1", six) == f"http://[::1]:{six.getsockname()[1]}/"


def test_a_browser_is_opened_or_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    told: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    serve.open_browser("http://127.0.0.1:1/", told.append)
    for thread in threading.enumerate():
        if thread.daemon and thread is not threading.current_thread():
            thread.join(timeout=10)
            if told:
                break
    assert told == ["No browser was found here. Open http://127.0.0.1:1/ in one."]
    assert "webbrowser" in sys.modules
