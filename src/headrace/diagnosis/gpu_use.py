"""How busy the GPU is while something runs: read ten times a second, if nvidia-ml-py is there."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

INTERVAL = 0.1


class GpuUse:
    """Of the busiest GPU; `share` stays None where there is none, and `missing` says why."""

    def __init__(self) -> None:
        self.share: float | None = None
        self.memory: int | None = None
        self.missing: str | None = None
        self._sums: list[float] = []
        self._reads = 0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> GpuUse:
        try:
            import pynvml  # type: ignore[import-not-found, import-untyped, unused-ignore]

            pynvml.nvmlInit()
            handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        except ImportError:
            self.missing = "use of the GPU: nvidia-ml-py is not installed (pip install nvidia-ml-py)"
        except Exception as error:
            self.missing = f"use of the GPU: {error}"
        else:
            self._sums = [0.0] * len(handles)
            self._thread = threading.Thread(target=self._watch, args=(pynvml, handles), daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        if self._reads and self._sums:
            self.share = max(self._sums) / self._reads / 100

    def _watch(self, pynvml: Any, handles: list[Any]) -> None:
        try:
            while handles and not self._over.wait(INTERVAL):
                for index, handle in enumerate(handles):
                    self._sums[index] += pynvml.nvmlDeviceGetUtilizationRates(handle).gpu
                    self.memory = max(self.memory or 0, int(pynvml.nvmlDeviceGetMemoryInfo(handle).used))
                self._reads += 1
        except Exception as error:  # a GPU that fell off the bus, a driver without this figure
            self.missing = f"use of the GPU: {error}"
