"""What every answer carries, and who gets one: only pages of this server, asked for by a name that it goes by."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from headrace.telemetry import encode_json

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
}
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
METHODS = ("GET", "HEAD")


class Guard:
    """Stands before everything, errors of the server included.

    The Host header is what keeps other web sites out: a page of theirs can give its own name the address of this
    machine and then ask for anything here, but it cannot change the name that the browser sends.
    """

    def __init__(self, app: App, hosts: Iterable[str] = ()) -> None:
        self._app = app
        self.hosts = frozenset(map(written_host, (*LOOPBACK, *hosts)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                given = [(name, value) for name, value in message.get("headers", ()) if name.lower() not in HEADERS]
                message["headers"] = [*given, *HEADERS.items()]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, send_guarded)
        else:
            await _answer(send_guarded, *refusal)

    def _refusal(self, scope: Scope) -> tuple[int, str, list[tuple[bytes, bytes]]] | None:
        told = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(told) != 1 or host_in(told[0]) not in self.hosts:
            named = told[0] if told else ""
            words = f"Host {named!r}: this server does not go by that name. Start it with --allow-host NAME to add one."
            return 403, words, []
        if scope["method"] not in METHODS:
            words = f"Method {scope['method']}: nothing can be changed here, so only GET and HEAD are answered."
            return 405, words, [(b"allow", ", ".join(METHODS).encode())]
        return None


def host_in(header: str) -> str:
    """The name in a Host header, without its port; empty if it is none."""
    if header.startswith("["):
        name, bracket, port = header.partition("]")
        return written_host(name + bracket) if bracket and (not port or port[1:].isdecimal()) else ""
    name, _, port = header.partition(":")
    return written_host(name) if not port or port.isdecimal() else ""


def written_host(name: str) -> str:
    """As it stands in a Host header: lower case, an IPv6 address in brackets and in its one way to be written."""
    bare = name.strip().lower().strip("[]")
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        return bare.removesuffix(".")
    return f"[{address}]" if address.version == 6 else str(address)


async def _answer(send: Send, status: int, words: str, headers: list[tuple[bytes, bytes]]) -> None:
    body = encode_json({"error": words})
    kind = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*kind, *headers]})
    await send({"type": "http.response.body", "body": body})
