"""Threads read no further than allowed, pass their errors on, and end when they have to."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from conftest_live import batches, live_threads, no_threads_left, open_feed, take, write_jsonl
from headrace.errors import HeadraceError
from headrace.loading.live import LiveText
from headrace.loading.live.ordered import Ordered
from headrace.tokenizers import Engine
from headrace.tokenizers.hf import HFTokenizer


class One(int):
    size = 10


def test_no_more_is_read_ahead_than_allowed() -> None:
    taken = 0

    def items() -> Iterator[One]:
        for number in itertools.count():
            assert number < taken + 3, "read too far ahead"
            yield One(number)

    for limits in ({"most_size": 30, "most_items": 100}, {"most_size": 1_000, "most_items": 3}):
        taken = 0
        work = Ordered(items(), lambda: nullcontext(lambda item: int(item) * 2), threads=3, **limits)
        for number in range(200):
            taken = number + 1  # before it is, because a thread may read on at once
            assert work.take() == number * 2
        work.stop()
        work.join()


def test_an_engine_that_does_not_load_reaches_the_caller(corpus: Path) -> None:
    live = LiveText(corpus, threads=2)
    live.engines.name = "no such engine"
    live.engines.load = lambda name: open("/no/such/engine")  # type: ignore[assignment,return-value] # noqa: SIM115
    with pytest.raises(FileNotFoundError, match="/no/such/engine"):
        open_feed(live).next()
    no_threads_left()


def test_engines_are_kept_for_the_next_feed(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, load = [], HFTokenizer.fast

    def counted(self: HFTokenizer, engine: str) -> Engine:
        loaded.append(engine)
        return load(self, engine)

    monkeypatch.setattr(HFTokenizer, "fast", counted)
    live = LiveText(corpus, threads=2)
    for _ in range(3):
        batches(live, 2)
        no_threads_left()
    assert loaded == ["gigatoken"] * 2  # one of them for the parity check


@pytest.mark.parametrize("batches_taken", [0, 3])
def test_stop_ends_all_threads(corpus: Path, batches_taken: int) -> None:
    opened = open_feed(LiveText(corpus, threads=3))
    take(opened, batches_taken)
    opened.stop()
    no_threads_left()
    with pytest.raises(HeadraceError, match="was stopped"):
        opened.next()


def test_a_caller_who_waits_is_told_of_the_stop(corpus: Path) -> None:
    go_on, waiting = threading.Event(), threading.Event()
    live = LiveText(corpus, threads=1, verbose=True, report=lambda line: go_on.wait(60) or None)
    go_on.set()
    assert live.engines.name == "gigatoken"
    go_on.clear()  # from now on no group gets ready
    opened, found = open_feed(live), list[BaseException]()

    def wait() -> None:
        waiting.set()
        try:
            opened.next()
        except HeadraceError as error:
            found.append(error)

    caller = threading.Thread(target=wait)
    caller.start()
    waiting.wait(60)
    time.sleep(0.05)  # until it waits for the batch itself
    opened.stop()
    caller.join(60)
    go_on.set()
    assert "was stopped" in str(found[0])
    no_threads_left()


def test_a_dropped_feed_leaves_no_thread(corpus: Path) -> None:
    opened = open_feed(LiveText(corpus, threads=2))
    opened.next()
    assert live_threads()
    del opened
    gc.collect()
    no_threads_left()


def test_a_process_may_end_while_threads_tokenize(tmp_path: Path) -> None:
    """Without a stop, without a word on stderr, and not kept alive by its threads."""
    write_jsonl(tmp_path / "a.jsonl", ["water wheel\n" * 20_000] * 30)
    code = (
        "from headrace.loading.live import LiveFeed, LiveText\n"
        f"live = LiveText({str(tmp_path / 'a.jsonl')!r}, threads=2, group=1)\n"
        "feed = LiveFeed(live, seq_len=16, batch_size=4)\n"
        "print(feed.next().tokens.shape)\n"
    )
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "(4, 17)\n", "")


def test_a_held_batch_is_not_overwritten(corpus: Path) -> None:
    opened = open_feed(LiveText(corpus), prefetch=2)
    seen = set()
    for _ in range(30):
        batch = opened.next()
        before = batch.tokens.copy()
        time.sleep(0.001)  # the thread fills all it may
        assert (batch.tokens == before).all()
        seen.add(batch.tokens.ctypes.data)
    assert len(seen) == 3
    opened.stop()


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint16"])
def test_dtypes(corpus: Path, dtype: str) -> None:
    opened = open_feed(LiveText(corpus), dtype=dtype)
    assert opened.next().tokens.dtype == np.dtype(dtype)
    opened.stop()
