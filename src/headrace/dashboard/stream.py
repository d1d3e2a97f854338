"""Server-sent events: one look at the files for all who listen, once a second, and none when nobody does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool

from headrace.dashboard.views import Message, View
from headrace.telemetry import encode_json

EVERY = 1.0  # seconds
HEARTBEAT = 15.0
RETRY = 1000  # milliseconds after which a browser asks again
MOST = 128  # listeners


class Streams:
    """Listeners wake together: what the first one reads from disk, the others find read."""

    def __init__(self, instance: str) -> None:
        self._instance = instance
        self._clock: asyncio.Task[None] | None = None
        self._tick = asyncio.Event()
        self._listeners, self._closed = 0, False

    @property
    def full(self) -> bool:
        return self._listeners >= MOST

    @property
    def listeners(self) -> int:
        return self._listeners

    async def listen(self, view: View) -> AsyncIterator[bytes]:
        self._join()
        loop = asyncio.get_running_loop()
        try:
            yield f"retry: {RETRY}\n".encode() + _written(("hello", {"instance": self._instance}, None))
            spoke = loop.time()
            while not self._closed:
                tick = self._tick  # before looking, so that nothing falls between
                for message in await run_in_threadpool(lambda: list(view.pull())):
                    yield _written(message)
                    spoke = loop.time()
                if loop.time() - spoke >= HEARTBEAT:
                    yield b": still here\n\n"
                    spoke = loop.time()
                await tick.wait()
        finally:
            self._leave()

    def close(self) -> None:
        """End all streams at once, so that nobody has to wait for them."""
        self._closed = True
        self._tick.set()

    def _join(self) -> None:
        self._listeners += 1
        if self._clock is None or self._clock.done():
            self._clock = asyncio.get_running_loop().create_task(self._keep_time())

    def _leave(self) -> None:
        self._listeners -= 1

    async def _keep_time(self) -> None:
        while self._listeners and not self._closed:
            await asyncio.sleep(EVERY)
            self._tick.set()
            if not self._closed:
                self._tick = asyncio.Event()


def _written(message: Message) -> bytes:
    """JSON has no line ends, so one line holds it."""
    kind, content, cursor = message
    place = f"id: {cursor}\n" if cursor else ""
    return f"event: {kind}\n{place}data: ".encode() + encode_json(content) + b"\n\n"
