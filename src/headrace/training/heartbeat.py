"""Ranks that watch each other through the store of their run: who has died, and after which step all of them stop.

A thread does it, because the training thread may be inside a collective that never ends. It asks nothing of a device.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from typing import Any

from headrace.errors import Interrupted, TrainingFailed

POLL = 0.5  # seconds
PATIENCE = 20  # polls without a sign of life; not seconds, because a machine that slept has not polled either
GRACE = 10.0  # seconds for the training thread to end by itself; with the patience 20, and torchrun kills after 30
LEFT = b"left"
ENDED, STOP = "ended", "stop"
GO_ON = "The checkpoints are kept. Run the same command again to go on from the newest."


class Heartbeat:
    """The watch of one rank. It looks at the next rank only; whoever finds a dead one tells all, so the store of
    1,000 ranks is asked for a few thousand small things a second and not for a million.
    """

    def __init__(self, store: Any, rank: int, world_size: int) -> None:
        self._store, self._rank, self._world_size = store, rank, world_size
        self.ended: str | None = None  # why the run cannot go on
        self.stopped_by = ""
        self._changed = threading.Condition()
        self._closing, self._wake = threading.Event(), threading.Event()
        self._begun: int | None = None  # steps; None before the first
        self._frozen, self._asked, self._noticed, self._suspicious = False, False, False, False
        self._stop_after: int | None = None
        self._beats, self._seen, self._silent = 0, b"", 0
        self._looked = 0  # polls since somebody asked who has died
        store.set(f"who/{rank}", f"{os.getpid()} {_namespace()} {socket.gethostname()}")
        store.set(f"beat/{rank}", "0")
        self._thread = threading.Thread(target=self._watch, name="heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, error: BaseException | None = None) -> None:
        """Leave; with an error the others are told and end too."""
        try:
            if error is not None and not self.agreed(error):
                self._tell(f"{self._name(self._rank)} failed: {_first_line(error)} {GO_ON}")
            self._closing.set()
            self._wake.set()
            self._thread.join(timeout=4 * POLL)
            self._store.set(f"beat/{self._rank}", LEFT.decode())
        except RuntimeError:  # the store has gone before; there is nobody left to tell
            self._closing.set()

    def stops(self, step: int, signal: str | None) -> bool:
        """Ask before each step whether it is still to be done. After a signal on any rank, all stop after the same one.

        Nobody is asked in an ordinary step: the threads agree on the last step that any rank has begun.
        """
        if signal is not None and not self._asked:
            self._asked = True
            self._store.compare_set(STOP, "", f"{signal} on rank {self._rank}")
            self._wake.set()
        with self._changed:
            if self._frozen:
                self._changed.wait_for(lambda: self._stop_after is not None or self.ended is not None)
            self._raise_if_ended()
            if self._stop_after is not None and step >= self._stop_after:
                return True
            self._begun = step + 1
            return False

    def cause(self) -> str | None:
        """Which rank made a collective fail; waits until it is known, and gives None if all are alive."""
        self._noticed = self._suspicious = True
        self._wake.set()
        with self._changed:
            self._changed.wait_for(lambda: self.ended is not None or self._looked > PATIENCE + 2)
            return self.ended

    def agreed(self, error: BaseException) -> bool:
        """Whether it is the stop that all ranks make together."""
        return isinstance(error, Interrupted) and self._stop_after is not None

    def _raise_if_ended(self) -> None:
        if self.ended is not None:
            self._noticed = True
            raise TrainingFailed(self.ended)

    def _watch(self) -> None:
        try:
            while self.ended is None:
                woken = self._wake.wait(POLL)
                self._wake.clear()
                if self._closing.is_set():
                    return
                self._beats += 1
                self._store.set(f"beat/{self._rank}", str(self._beats))
                self._look(counted=not woken)
                self._agree()
                with self._changed:
                    self._looked += self._suspicious and not woken
                    self._changed.notify_all()
        except Exception as error:  # whatever it was, nobody watches any more
            if not self._closing.is_set():
                self._end(f"The store of the run does not answer ({_first_line(error)}): {_holder()} ended. {GO_ON}")
        if self.ended is not None and not self._closing.wait(GRACE) and not self._noticed:
            self._leave_at_once()

    def _look(self, *, counted: bool) -> None:
        if self._store.check([ENDED]):
            self._end(self._store.get(ENDED).decode())
            return
        neighbour = (self._rank + 1) % self._world_size
        beat = self._store.get(f"beat/{neighbour}")
        self._silent = self._silent + counted if beat == self._seen and beat != LEFT else 0
        self._seen = beat
        if self._silent >= PATIENCE:
            self._tell(f"{self._name(neighbour)} has given no sign of life for {PATIENCE * POLL:g} s. {GO_ON}")
        elif self._suspicious or self._frozen:  # a signal may be torchrun's, who ends the others when one has died
            self._look_for_the_dead()

    def _look_for_the_dead(self) -> None:
        """On one machine a dead process can be seen at once."""
        for other in range(self._world_size):
            pid, namespace, host = self._store.get(f"who/{other}").decode().split(" ", 2)
            here = (namespace, host) == (_namespace(), socket.gethostname())
            if here and not _alive(int(pid)) and self._store.get(f"beat/{other}") != LEFT:
                self._tell(f"{self._name(other)} died. {GO_ON}")
                return

    def _agree(self) -> None:
        """Once a stop is asked for: no new step, then the largest number of steps that any rank has begun."""
        if self._begun is None or self._stop_after is not None:
            return
        if not self._frozen:
            if not self._store.check([STOP]):
                return
            with self._changed:
                self._frozen, begun = True, self._begun
            self.stopped_by = self._store.get(STOP).decode()
            self._store.set(f"begun/{self._rank}", str(begun))
        keys = [f"begun/{rank}" for rank in range(self._world_size)]
        if self._store.check(keys):
            with self._changed:
                self._stop_after = max(int(value) for value in self._store.multi_get(keys))
                self._changed.notify_all()

    def _tell(self, text: str) -> None:
        """The first to find a reason is believed by all."""
        self._end(self._store.compare_set(ENDED, "", text).decode())

    def _end(self, text: str) -> None:
        with self._changed:
            self.ended = self.ended or text
            self._changed.notify_all()

    def _name(self, rank: int) -> str:
        pid, _, host = self._store.get(f"who/{rank}").decode().split(" ", 2)
        return f"Rank {rank} (process {pid} on {host})"

    def _leave_at_once(self) -> None:
        """The training thread hangs in a collective, where no exception reaches it."""
        print(f"error: {self.ended}", file=sys.stderr, flush=True)
        os._exit(TrainingFailed.exit_code)


def _holder() -> str:
    return "the torchrun that holds it" if "TORCHELASTIC_RUN_ID" in os.environ else "rank 0, which holds it,"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def _namespace() -> str:
    """Process ids mean something only to those in the same namespace: containers may share a host's name."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return "-"


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
