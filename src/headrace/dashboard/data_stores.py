"""Datasets and tokenizers that are open, the ones asked for last kept."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Generic, TypeVar

from headrace.dashboard.data_folder import Stamp, stamp_of
from headrace.dashboard.data_pieces import Pieces
from headrace.storage import TokenStore

KEPT = 8
T = TypeVar("T")


class Newest(Generic[T]):
    """Values by key, each made once; only the ones asked for last stay."""

    def __init__(self, most: int = KEPT) -> None:
        self._most, self._lock = most, threading.Lock()
        self._kept: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """One at a time: a tokenizer of 129,000 ids takes 0.4 s, and two requests for it come at once."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return self._kept[key]


class Stores:
    """A dataset that was written anew has another stamp, and is opened anew."""

    def __init__(self) -> None:
        self._stores: Newest[TokenStore] = Newest()
        self._pieces: Newest[Pieces] = Newest()

    def open(self, folder: Path, split: str) -> tuple[TokenStore, Stamp | None]:
        stamp = stamp_of(folder)
        return self._stores.get((folder, stamp, split), lambda: TokenStore(folder, split=split)), stamp

    def pieces(self, store: TokenStore, stamp: Stamp | None) -> Pieces:
        """One tokenizer for all splits."""
        return self._pieces.get((store.path, stamp), lambda: Pieces(store.tokenizer))
