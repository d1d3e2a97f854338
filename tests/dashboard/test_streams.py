from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from headrace.dashboard import stream
from headrace.dashboard.stream import Streams
from headrace.dashboard.views import Message


class Counter:
    """Has something new every time it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def pull(self) -> Iterator[Message]:
        self.asked += 1
        yield "points", {"asked": self.asked, "text": "a\nb"}, f"c.{self.asked}"


class Silent:
    def pull(self) -> Iterator[Message]:
        return iter(())


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "EVERY", 0.01)


def test_a_listener_is_greeted_and_told() -> None:
    async def listen() -> list[bytes]:
        found, streams = [], Streams("me")
        listening = streams.listen(Counter())
        async for part in listening:
            found.append(part)
            if len(found) == 3:
                break
        await listening.aclose()
        return found

    hello, first, second = asyncio.run(listen())
    assert hello == b'retry: 1000\nevent: hello\ndata: {"instance":"me"}\n\n'
    assert first == b'event: points\nid: c.1\ndata: {"asked":1,"text":"a\\nb"}\n\n'
    assert second.startswith(b"event: points\nid: c.2\n")


def test_one_who_does_not_read_is_not_asked_for() -> None:
    """Nothing is made for a client, and nothing is kept for it, before it takes what it has."""

    async def listen() -> int:
        view, streams = Counter(), Streams("me")
        listening = streams.listen(view)
        await anext(listening)
        await anext(listening)
        await asyncio.sleep(0.2)  # many ticks
        asked = view.asked
        await listening.aclose()
        return asked

    assert asyncio.run(listen()) == 1


def test_nobody_listening_means_nobody_looking() -> None:
    async def listen() -> tuple[int, bool]:
        view, streams = Counter(), Streams("me")
        listening = streams.listen(view)
        await anext(listening)
        assert streams.listeners == 1
        clock = streams._clock
        assert clock is not None
        await listening.aclose()
        await asyncio.wait_for(clock, 30)
        return streams.listeners, clock.done()

    assert asyncio.run(listen()) == (0, True)


def test_a_silent_stream_has_a_heartbeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT", 0.0)

    async def listen() -> bytes:
        listening = Streams("me").listen(Silent())
        await anext(listening)
        found = await asyncio.wait_for(anext(listening), 30)
        await listening.aclose()
        return found

    assert asyncio.run(listen()) == b": still here\n\n"


def test_closing_ends_every_stream() -> None:
    async def listen() -> list[list[bytes]]:
        streams = Streams("me")

        async def all_of() -> list[bytes]:
            return [part async for part in streams.listen(Silent())]

        tasks = [asyncio.create_task(all_of()) for _ in range(3)]
        await asyncio.sleep(0.05)
        streams.close()
        return await asyncio.wait_for(asyncio.gather(*tasks), 30)

    assert [len(parts) for parts in asyncio.run(listen())] == [1, 1, 1]
