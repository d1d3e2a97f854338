"""Ordered: items made into results by several threads at once, and given out in the order of the items.

The threads take turns to read the next item, so there is no thread that only reads and no queue between. Whoever reads
waits while too much has been made that nobody took.
"""

from __future__ import annotations

import atexit
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Generic, Protocol, TypeVar

AT_EXIT = 5.0  # seconds for each thread; one that waits for the network is not waited for longer


class Sized(Protocol):
    @property
    def size(self) -> int: ...


Item = TypeVar("Item", bound=Sized)
Result = TypeVar("Result")
Worker = Callable[[Item], Result]


class Stopped(Exception):
    """A result was waited for when `stop` was called."""


class Ordered(Generic[Item, Result]):
    """`open_worker` is entered once in each thread and gives what makes a result of an item."""

    def __init__(
        self,
        items: Iterator[Item],
        open_worker: Callable[[], AbstractContextManager[Worker[Item, Result]]],
        *,
        threads: int,
        most_size: int,
        most_items: int,
    ) -> None:
        self._items, self._open_worker = items, open_worker
        self._most_size, self._most_items = most_size, most_items
        self._reading = threading.Lock()
        # The lock of a Condition may be taken twice by one thread: the garbage collector may call `stop` anywhere.
        self._changed = threading.Condition()
        self._done: dict[int, tuple[Result | BaseException, int]] = {}
        self._read = self._taken = self._held = 0
        self._stopped = self._read_all = False
        self._failure: BaseException | None = None
        names = [f"headrace-live-{number}" for number in range(threads)]
        self._threads = [threading.Thread(target=self._work, name=name, daemon=True) for name in names]
        _running.add(self)
        for thread in self._threads:
            thread.start()

    def take(self) -> Result:
        """The next result in order, or the error that came in its place."""
        with self._changed:
            while self._taken not in self._done and not self._stopped and self._failure is None:
                self._changed.wait()
            if self._stopped:
                raise Stopped
            if self._taken not in self._done:
                assert self._failure is not None
                raise self._failure
            result, size = self._done.pop(self._taken)
            self._taken += 1
            self._held -= size
            self._changed.notify_all()
        if isinstance(result, BaseException):
            raise result
        return result

    def stop(self) -> None:
        """No thread begins anything more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def join(self, seconds: float | None = None) -> None:
        for thread in self._threads:
            thread.join(seconds)

    def _work(self) -> None:
        try:
            with self._open_worker() as worker:
                while (turn := self._next()) is not None:
                    self._make(worker, *turn)
        except BaseException as error:
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _make(self, worker: Worker[Item, Result], number: int, item: Item) -> None:
        try:
            self._put(number, worker(item), item.size)
        except BaseException as error:  # whoever takes this result raises it
            self._put(number, error, item.size)

    def _next(self) -> tuple[int, Item] | None:
        """The next item and its number; None when the thread has to end."""
        with self._reading:
            if not self._has_room():
                return None
            try:
                item = next(self._items)
            except BaseException as error:  # comes after the results of all items before it
                self._read_all = True
                self._put(self._read, error, 0)
                return None
            with self._changed:
                number, self._read = self._read, self._read + 1
                self._held += item.size
            return number, item

    def _has_room(self) -> bool:
        """Waits until there is; False when nothing more is to be read. An item of any size passes when it is alone."""
        with self._changed:
            while not self._stopped and not self._read_all and self._is_full():
                self._changed.wait()
            return not self._stopped and not self._read_all

    def _is_full(self) -> bool:
        return self._held >= self._most_size or self._read - self._taken >= self._most_items

    def _put(self, number: int, result: Result | BaseException, size: int) -> None:
        with self._changed:
            self._done[number] = result, size
            self._changed.notify_all()


_running: weakref.WeakSet[Ordered[Any, Any]] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """Wait for threads in native code: coming back to an interpreter that has ended kills them there before 3.14."""
    running = list(_running)
    for one in running:
        one.stop()
    for one in running:
        one.join(AT_EXIT)
