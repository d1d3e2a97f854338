"""Batches on the device: copied on a stream of their own, while the batch before them is computed on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from headrace.errors import UsageError
from headrace.loading.feed import Batch
from headrace.loading.loader import Loader

DTYPES = (torch.int64, torch.int32)  # what an embedding takes


def cuda_available() -> bool:
    return torch.cuda.is_available()


def pinned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Page-locked memory as an array."""
    array: NDArray[Any] = torch.zeros(shape, dtype=getattr(torch, dtype.name), pin_memory=True).numpy()
    return array


class DeviceBatch(NamedTuple):
    """Its memory is its own: keep it as long as you like. The last four are there if the loader gives boundaries."""

    input_ids: torch.Tensor  # [B, L]
    targets: torch.Tensor  # [B, L], one token ahead
    step: int
    position_ids: torch.Tensor | None = None
    doc_ids: torch.Tensor | None = None
    cu_seqlens: torch.Tensor | None = None
    loss_mask: torch.Tensor | None = None

    @property
    def tensors(self) -> list[torch.Tensor]:
        return [field for field in self if isinstance(field, torch.Tensor)]

    @property
    def extras(self) -> dict[str, torch.Tensor]:
        """What a model of Headrace takes beside inputs and targets."""
        found = {"doc_ids": self.doc_ids, "loss_mask": self.loss_mask}
        return {name: tensor for name, tensor in found.items() if tensor is not None}


def split(tokens: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets in new, contiguous memory on the device of the tokens, and widened there.

    torch has hardly a kernel for uint16, but this copy it has, on the CPU and on CUDA.
    """
    inputs = tokens[:, :-1].to(dtype, copy=True, memory_format=torch.contiguous_format)
    return inputs, tokens[:, 1:].to(dtype, copy=True, memory_format=torch.contiguous_format)


def place(batch: Batch, device: torch.device, dtype: torch.dtype, *, non_blocking: bool = False) -> DeviceBatch:
    """Copy to the device as narrow as it is, and widen it there."""

    def sent(array: NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(array).to(device, non_blocking=non_blocking)

    input_ids, targets = split(sent(batch.tokens), dtype)
    found = {} if batch.boundaries is None else batch.boundaries._asdict()
    return DeviceBatch(input_ids, targets, batch.step, **{name: sent(array) for name, array in found.items()})


class Event(Protocol):
    """A point in a stream."""

    def query(self) -> bool:
        """Whether the device has come past it."""

    def synchronize(self) -> None:
        """Wait until it has."""


class Streams(Protocol):
    """What a feeder needs of a device that copies beside its computing."""

    def launch(self, copy: Callable[[], DeviceBatch]) -> tuple[DeviceBatch, Event]:
        """Put a copy on the side stream; the event is when it has read its source and filled its target."""

    def hand_over(self, batch: DeviceBatch, event: Event) -> None:
        """Let the stream that computes wait for the event, and keep the batch's memory until it is done with it."""


class CudaStreams:
    """A side stream of a CUDA device."""

    def __init__(self, device: torch.device) -> None:
        self._cuda: Any = torch.cuda
        self._device, self._side = device, self._cuda.Stream(device)

    def launch(self, copy: Callable[[], DeviceBatch]) -> tuple[DeviceBatch, Event]:
        event = self._cuda.Event(blocking=True)  # waits asleep: the loader's thread can use the core
        with self._cuda.stream(self._side):
            batch = copy()
            event.record(self._side)
        return batch, event

    def hand_over(self, batch: DeviceBatch, event: Event) -> None:
        computing = self._cuda.current_stream(self._device)
        computing.wait_event(event)
        for tensor in batch.tensors:
            tensor.record_stream(computing)


class DeviceFeeder:
    """Batches of a loader on a device, `depth` of them on their way at a time.

    With 2, the next batch is copied while one is computed on. A host buffer goes back to the loader once the event
    behind its copy has passed, never before. Device memory is the allocator's and not a ring: autograd keeps the ids of
    an embedding until the backward pass, over any number of accumulated steps, and only the allocator knows when.
    """

    def __init__(
        self,
        loader: Loader,
        device: torch.device | str,
        *,
        depth: int = 2,
        dtype: torch.dtype = torch.int64,
        backend: Streams | None = None,
    ) -> None:
        if depth < 1:
            raise UsageError(
                f"depth {depth}: at least 1 batch has to be on its way; 2 let copies run beside computing."
            )
        if dtype not in DTYPES:
            raise UsageError(f"dtype {dtype}: a model takes {' or '.join(map(str, DTYPES))}.")
        self._loader, self._device, self._depth, self._dtype = loader, torch.device(device), depth, dtype
        self._streams = backend or (CudaStreams(self._device) if self._device.type == "cuda" else None)
        self._ahead: deque[tuple[DeviceBatch, Event]] = deque()  # launched, not handed out
        self._read: deque[tuple[Batch, Event]] = deque()  # host buffers that a copy may still read, oldest first
        self._failure: Exception | None = None
        self._step = loader.step
        if self._streams is not None:
            loader.close()  # buffers that were lent before do not count
            loader.hold(depth + 1)  # those ahead, and the one handed out last: its copy may not be done either

    @property
    def step(self) -> int:
        """How many batches have been handed out, in all runs together."""
        return self._step

    def __iter__(self) -> Iterator[DeviceBatch]:
        return self

    def __next__(self) -> DeviceBatch:
        batch = self._copied() if self._streams is None else self._streamed(self._streams)
        self._step = batch.step + 1
        return batch

    def state_dict(self) -> dict[str, Any]:
        """The loader's, as of the batch handed out last; what was taken ahead does not count."""
        return self._loader.state_dict(self._step)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._loader.load_state_dict(state)
        self._forget()

    def close(self) -> None:
        """Wait for copies under way; the loader then goes on behind the batch handed out last."""
        self._loader.load_state_dict(self.state_dict())
        self._forget()

    def _copied(self) -> DeviceBatch:
        """Without streams: 42 us for 32 rows of 2,048, after which the host buffer is free."""
        batch = self._loader.take()
        try:
            return place(batch, self._device, self._dtype)
        finally:
            self._loader.give_back(batch)

    def _streamed(self, streams: Streams) -> DeviceBatch:
        self._give_back_finished()
        self._fill(streams)
        batch, event = self._ahead.popleft()
        streams.hand_over(batch, event)
        return batch

    def _fill(self, streams: Streams) -> None:
        """Launch copies up to the depth. A batch that cannot be read is an error when its turn comes, not before."""
        try:
            while len(self._ahead) < self._depth and self._failure is None:
                self._launch(streams)
        except Exception as error:
            self._failure = error
        if not self._ahead:
            failure, self._failure = self._failure, None
            assert failure is not None, "something was launched, or it failed"
            raise failure

    def _launch(self, streams: Streams) -> None:
        if len(self._read) > self._depth:
            self._read[0][1].synchronize()
            self._give_back_finished()
        batch = self._loader.take()
        placed, event = streams.launch(lambda: place(batch, self._device, self._dtype, non_blocking=True))
        self._read.append((batch, event))
        self._ahead.append((placed, event))

    def _give_back_finished(self) -> None:
        while self._read and self._read[0][1].query():
            self._loader.give_back(self._read.popleft()[0])

    def _forget(self) -> None:
        """The loader has begun anew with other buffers; the old ones live until nothing reads them."""
        for _, event in self._read:
            event.synchronize()
        self._read.clear()
        self._ahead.clear()
        self._failure, self._step = None, self._loader.step
