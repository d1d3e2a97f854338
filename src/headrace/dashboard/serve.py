"""Serving the dashboard: a free port, a clean end, and a word of warning where others can read along."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
import webbrowser
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from headrace.errors import MissingDependency, UsageError

if TYPE_CHECKING:
    from headrace.dashboard.stream import Streams

PORT = 8765
TRIED = 50  # ports from the first one on
PATIENCE = 1  # seconds for answers that are on their way when the server is ended
NEEDED = ("starlette", "uvicorn", "plotly")


def check_installed() -> None:
    for package in NEEDED:
        if find_spec(package) is None:
            raise MissingDependency(package, "dashboard", "The dashboard")


def open_port(host: str, port: int | None) -> socket.socket:
    """Listen on a port; one that was not asked for by number may be the next free one."""
    ports = [port] if port is not None else range(PORT, PORT + TRIED)
    for number in ports:
        try:
            return _listening(host, number)
        except socket.gaierror as error:
            raise UsageError(
                f"--host {host}: {error.strerror}. Use 127.0.0.1, or an address of this machine."
            ) from error
        except PermissionError as error:
            raise UsageError(f"--port {number}: not allowed here. Use one of 1024 or higher.") from error
        except OSError as error:
            refused = error
    if port is None:
        raise UsageError(f"No port from {PORT} to {PORT + TRIED - 1} can be had on {host}: {refused.strerror}.")
    raise UsageError(
        f"--port {port} on {host}: {(refused.strerror or 'taken').lower()}. Leave --port out to take the next free one."
    )


def _listening(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port that was given back a moment ago is free
        made.bind(address)
        made.listen(128)
    except OSError:
        made.close()
        raise
    return made


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def names_of(host: str) -> list[str]:
    """Names that a browser may call this server by, beside localhost."""
    return [host, socket.gethostname()] if _is_everywhere(host) else [host]


def address_of(host: str, listening: socket.socket) -> str:
    port = listening.getsockname()[1]
    name = socket.gethostname() if _is_everywhere(host) else host
    return f"http://[{name}]:{port}/" if ":" in name else f"http://{name}:{port}/"


def _is_everywhere(host: str) -> bool:
    return host in ("0.0.0.0", "::", "")


def serve(
    runs: Path, data: Path, listening: socket.socket, *, hosts: list[str], ready: Callable[[], None] | None = None
) -> None:
    """Serve until Ctrl-C or SIGTERM; `ready` is called when the first request can come."""
    import uvicorn

    from headrace.dashboard.app import Dashboard
    from headrace.dashboard.context import Context

    dashboard = Dashboard(Context(runs, data))
    config = uvicorn.Config(
        dashboard.guarded(hosts),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=PATIENCE,
    )

    class Server(uvicorn.Server):
        """Ends its streams when it is told to end: they would go on for ever otherwise."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            self._loop = asyncio.get_running_loop()
            await super().startup(sockets)
            if ready is not None:
                ready()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            _close_soon(self._loop, dashboard.streams)
            super().handle_exit(sig, frame)

    Server(config).run(sockets=[listening])


def _close_soon(loop: asyncio.AbstractEventLoop, streams: Streams) -> None:
    loop.call_soon_threadsafe(streams.close)


def open_browser(address: str, report: Callable[[str], Any]) -> None:
    """In a thread: some browsers give the word back only when they are closed."""

    def show() -> None:
        if not webbrowser.open(address):
            report(f"No browser was found here. Open {address} in one.")

    threading.Thread(target=show, daemon=True).start()
