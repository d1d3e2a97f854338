"""What a process saw, as one JSON file: every second, at its end, and where a worker leaves by os._exit."""

from __future__ import annotations

import atexit
import builtins
import json
import os
import sys
from threading import Lock
from typing import Any

from .recording import Recording  # noqa: TID252

FORMAT = 1


class Writer:
    def __init__(self, folder: str, recording: Recording) -> None:
        self.folder = folder
        self.recording = recording
        self._lock = Lock()
        self._open = builtins.open  # the probe's own files are not counted
        self.parent = os.getpid()

    def install(self) -> None:
        atexit.register(self.write)
        leave = os._exit

        def leaving(code: int) -> None:
            """Forked workers end so, past atexit."""
            self.write()
            leave(code)

        os._exit = leaving  # type: ignore[assignment]

    def forked(self) -> None:
        self._lock = Lock()  # the parent's may have been held

    def write(self) -> None:
        """Never raises: the script is more important."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self.recording.mine:
                self._write(json.dumps(self.content()))
        except RuntimeError:
            pass  # the script changed something meanwhile: the next time, or the last, will do
        except Exception as error:
            self.recording.miss("the record", error)
        finally:
            self._lock.release()

    def content(self) -> dict[str, Any]:
        sampler = self.recording.sampler
        return {
            "format": FORMAT,
            "pid": os.getpid(),
            "parent": os.getppid(),
            "rank": rank_of(self.recording),
            "python": sys.version.split()[0],
            "cores": cores(),
            "gpu": gpu_memory(self.recording),
            "samples": sampler.as_dict() if sampler is not None else None,
            **self.recording.as_dict(),
        }

    def _write(self, text: str) -> None:
        path = os.path.join(self.folder, f"process-{os.getpid()}.json")
        with self._open(path + ".part", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".part", path)


def rank_of(recording: Recording) -> str | None:
    """As torchrun says, or as the script itself has set it up."""
    return os.environ.get("RANK", str(recording.rank) if recording.rank is not None else None)


def cores() -> int:
    """That this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def gpu_memory(recording: Recording) -> int | None:
    if not recording.cuda or recording.forked:
        return None
    return int(recording.torch.cuda.max_memory_allocated())
