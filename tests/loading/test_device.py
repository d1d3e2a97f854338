"""A buffer is never filled again while a copy reads it, and what is handed out is the loader's batches, resumable."""

from __future__ import annotations

import itertools
import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from dataset import random_documents, write_dataset

from headrace import Loader
from headrace.errors import UsageError
from headrace.loading import Batch
from headrace.loading.device import CudaStreams, DeviceBatch, DeviceFeeder, Event, place
from headrace.loading.live import LiveText

VOCAB = 60_000  # ids above 32,767 show a lost sign
CPU = torch.device("cpu")
NEVER = 1 << 30
STEPS = 12


@pytest.fixture
def data(tmp_path: Path) -> Path:
    shards = [random_documents(seed, 60, vocab_size=VOCAB) for seed in range(3)]
    write_dataset(tmp_path / "data", shards, vocab_size=VOCAB)
    return tmp_path / "data"


def options(**more: Any) -> dict[str, Any]:
    return {"seq_len": 16, "batch_size": 4, "seed": 3, **more}


def expected(data: Path, steps: int = STEPS) -> list[list[list[int]]]:
    return [batch.tokens.tolist() for batch in itertools.islice(Loader(data, **options()), steps)]


def tokens(batch: DeviceBatch) -> list[list[int]]:
    """The rows again out of inputs and targets."""
    assert torch.equal(batch.input_ids[:, 1:], batch.targets[:, :-1])
    return torch.cat([batch.input_ids, batch.targets[:, -1:]], 1).tolist()


# A stand-in for a device


class SlowEvent:
    def __init__(self, streams: SlowStreams, placed: DeviceBatch, copy: Callable[[], DeviceBatch]) -> None:
        self._streams, self._placed, self._copy = streams, placed, copy
        self.step, self.launched_at = placed.step, streams.launched

    def query(self) -> bool:
        if self._streams.launched - self.launched_at > self._streams.lag:
            self._streams.finish(until=self.step)
        return self not in self._streams.pending

    def synchronize(self) -> None:
        self._streams.log.append(("synchronize", self.step))
        self._streams.finish(until=self.step)

    def happen(self) -> None:
        for target, source in zip(self._placed.tensors, self._copy().tensors, strict=True):
            target.copy_(source)
        self._streams.log.append(("done", self.step))


class SlowStreams:
    """Notes the order of calls. A copy reads its source only when its event comes, `lag` launches later."""

    def __init__(self, log: list[tuple[str, int]], *, lag: int) -> None:
        self.log, self.lag, self.launched = log, lag, 0
        self.pending: deque[SlowEvent] = deque()

    def launch(self, copy: Callable[[], DeviceBatch]) -> tuple[DeviceBatch, Event]:
        placed = copy()
        for tensor in placed.tensors:
            tensor.zero_()
        self.launched += 1
        self.pending.append(SlowEvent(self, placed, copy))
        self.log.append(("launch", placed.step))
        return placed, self.pending[-1]

    def hand_over(self, batch: DeviceBatch, event: Event) -> None:
        assert isinstance(event, SlowEvent)
        assert event.step == batch.step
        self.log.append(("wait", batch.step))

    def finish(self, until: int = NEVER) -> None:
        while self.pending and self.pending[0].step <= until:
            self.pending[0].happen()
            self.pending.popleft()


class NotedLoader(Loader):
    """Notes what is taken and given back, and spoils a buffer as soon as it is given back."""

    log: list[tuple[str, int]]

    def take(self) -> Batch:
        batch = super().take()
        self.log.append(("take", batch.step))
        return batch

    def give_back(self, batch: Batch) -> None:
        self.log.append(("give back", batch.step))
        batch.tokens.fill(7)
        super().give_back(batch)


class HastyFeeder(DeviceFeeder):
    """Gives buffers back without asking their events."""

    def _give_back_finished(self) -> None:
        while self._read:
            self._loader.give_back(self._read.popleft()[0])


def streamed(
    data: Path, *, depth: int, lag: int, kind: type[DeviceFeeder] = DeviceFeeder
) -> tuple[list[list[list[int]]], list[tuple[str, int]]]:
    """What arrives on a device that is `lag` copies behind, read when all has happened, and the order of calls."""
    log: list[tuple[str, int]] = []
    loader = NotedLoader(data, **options(prefetch=1))
    loader.log = log
    streams = SlowStreams(log, lag=lag)
    batches = list(itertools.islice(kind(loader, "cpu", depth=depth, backend=streams), STEPS))
    streams.finish()
    return [tokens(batch) for batch in batches], log


def too_early(log: list[tuple[str, int]]) -> list[int]:
    """Steps whose buffer was given back before their copy was done."""
    return [step for at, (call, step) in enumerate(log) if call == "give back" and ("done", step) not in log[:at]]


@pytest.mark.parametrize("lag", [0, 1, 3, NEVER])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_buffer_goes_back_when_its_copy_is_done(data: Path, depth: int, lag: int) -> None:
    found, log = streamed(data, depth=depth, lag=lag)
    assert found == expected(data)
    assert too_early(log) == []
    taken, given = ([step for call, step in log if call == name] for name in ("take", "give back"))
    assert given == taken[: len(given)]
    assert len(taken) - len(given) <= depth + 1


def test_the_stand_in_notices_a_buffer_given_back_too_early(data: Path) -> None:
    found, log = streamed(data, depth=2, lag=NEVER, kind=HastyFeeder)
    assert found != expected(data)
    assert too_early(log) != []


@pytest.mark.parametrize("depth", [2, 3])
def test_the_next_copies_are_under_way_when_a_batch_is_handed_out(data: Path, depth: int) -> None:
    _, log = streamed(data, depth=depth, lag=1)
    for at, (call, step) in enumerate(log):
        if call == "wait":
            assert [one for name, one in log[:at] if name == "launch"][-depth:] == list(range(step, step + depth))


def test_the_host_waits_only_when_buffers_run_out(data: Path) -> None:
    _, quick = streamed(data, depth=2, lag=0)
    assert "synchronize" not in {call for call, _ in quick}
    _, slow = streamed(data, depth=2, lag=NEVER)
    assert [step for call, step in slow if call == "synchronize"] == list(range(STEPS - 2))
    held = 0
    for call, _ in slow:
        held += {"take": 1, "give back": -1}.get(call, 0)
        assert held <= 3


# State


@pytest.mark.parametrize("lag", [None, 0, NEVER])
def test_the_state_is_that_of_the_batch_handed_out_last(data: Path, lag: int | None) -> None:
    def feeder() -> DeviceFeeder:
        return DeviceFeeder(Loader(data, **options()), "cpu", depth=3, backend=backend())

    def backend() -> SlowStreams | None:
        return None if lag is None else SlowStreams([], lag=lag)

    running = feeder()
    for step, rows in enumerate(expected(data)):
        resumed = feeder()
        next(resumed)
        resumed.load_state_dict(json.loads(json.dumps(running.state_dict())))
        assert resumed.step == running.step == step
        for one in (running, resumed):
            batch = next(one)
            if isinstance(one._streams, SlowStreams):
                one._streams.finish(until=step)
            assert (batch.step, tokens(batch)) == (step, rows)


def test_live_text_goes_on_behind_the_batch_handed_out_last(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("".join(f"{number} words in a line\n" for number in range(500)))
    live = LiveText(str(tmp_path / "text.txt"), tokenizer="headrace-32k", threads=1)

    def feeder() -> DeviceFeeder:
        return DeviceFeeder(Loader(live, seq_len=8, batch_size=2), "cpu", depth=3, backend=SlowStreams([], lag=0))

    running, resumed = feeder(), feeder()
    next(running), next(running)
    resumed.load_state_dict(json.loads(json.dumps(running.state_dict())))
    mine, theirs = [list(itertools.islice(one, 5)) for one in (running, resumed)]
    for one in (running, resumed):
        assert isinstance(one._streams, SlowStreams)
        one._streams.finish()
    assert [tokens(batch) for batch in mine] == [tokens(batch) for batch in theirs]
    assert len({str(tokens(batch)) for batch in mine}) == 5


def test_a_closed_feeder_leaves_the_loader_behind_its_last_batch(data: Path) -> None:
    loader, streams = Loader(data, **options()), SlowStreams([], lag=NEVER)
    feeder = DeviceFeeder(loader, "cpu", depth=3, backend=streams)
    next(feeder), next(feeder)
    assert loader.step == 4
    feeder.close()
    assert not streams.pending
    assert next(loader).tokens.tolist() == expected(data)[2]


def test_a_state_that_is_refused_changes_nothing(data: Path) -> None:
    feeder = DeviceFeeder(Loader(data, **options()), "cpu", backend=SlowStreams([], lag=0))
    next(feeder)
    with pytest.raises(UsageError, match="other data or settings"):
        feeder.load_state_dict(Loader(data, **options(seed=4)).state_dict())
    assert next(feeder).step == 1


def test_a_feeder_after_another_finds_its_buffers(data: Path) -> None:
    loader = Loader(data, **options(prefetch=1))
    for _ in range(4):
        feeder = DeviceFeeder(loader, "cpu", depth=2, backend=SlowStreams([], lag=NEVER))
        steps = [next(feeder).step for _ in range(5)]
        assert steps == list(range(steps[0], steps[0] + 5))


class FailingLoader(Loader):
    def take(self) -> Batch:
        if self.step == 3:
            raise OSError("the disk is gone")
        return super().take()


def test_an_error_comes_when_its_batch_would(data: Path) -> None:
    feeder = DeviceFeeder(FailingLoader(data, **options()), "cpu", depth=3, backend=SlowStreams([], lag=0))
    assert [next(feeder).step for _ in range(3)] == [0, 1, 2]
    for _ in range(2):
        with pytest.raises(OSError, match="the disk is gone"):
            next(feeder)
    assert feeder.state_dict()["step"] == 3


# Memory, types and shapes


@pytest.mark.parametrize("accumulation", [1, 2, 4])
def test_gradients_of_accumulated_batches_are_exact(data: Path, accumulation: int) -> None:
    def gradient(batches: Iterator[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
        torch.manual_seed(0)
        embedding, head = torch.nn.Embedding(VOCAB, 2), torch.nn.Linear(2, VOCAB)
        losses = [
            torch.nn.functional.cross_entropy(head(embedding(inputs)).flatten(0, 1), targets.flatten())
            for inputs, targets in itertools.islice(batches, accumulation)
        ]
        torch.stack(losses).sum().backward()  # the embedding reads its ids only now
        assert embedding.weight.grad is not None
        return embedding.weight.grad

    exact = torch.tensor(expected(data, accumulation))
    feeder = DeviceFeeder(Loader(data, **options(prefetch=1)), "cpu")
    found = gradient((batch.input_ids, batch.targets) for batch in feeder)
    assert torch.equal(found, gradient((rows[:, :-1], rows[:, 1:]) for rows in exact))


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("wide", [torch.int64, torch.int32])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint16"])
def test_ids_are_widened_on_the_device(data: Path, dtype: str, wide: torch.dtype, device: str) -> None:
    batch = next(DeviceFeeder(Loader(data, **options(dtype=dtype)), device, dtype=wide))
    for tensor in (batch.input_ids, batch.targets):
        assert (tensor.dtype, tensor.device.type, tuple(tensor.shape)) == (wide, device, (4, 16))
        assert tensor.is_contiguous()
    if device == "cpu":
        assert tokens(batch) == expected(data)[0]
        assert batch.input_ids.max() > np.iinfo(np.int16).max


def test_boundaries_come_along(data: Path) -> None:
    loader = Loader(data, **options(documents=True))
    exact = loader.batch_at(0).boundaries
    batch = next(DeviceFeeder(loader, "cpu"))
    assert exact is not None
    for name, array in exact._asdict().items():
        assert getattr(batch, name).tolist() == array.tolist()
    assert set(batch.extras) == {"doc_ids", "loss_mask"}
    assert next(DeviceFeeder(Loader(data, **options()), "cpu")).extras == {}


@pytest.mark.parametrize("wrong", [{"depth": 0}, {"dtype": torch.uint16}, {"dtype": torch.float32}])
def test_wrong_settings_are_refused(data: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(wrong))} "):
        DeviceFeeder(Loader(data, **options()), "cpu", **wrong)


# CUDA


class NotedTensor(torch.Tensor):
    def record_stream(self, stream: Any) -> None:  # type: ignore[override]
        stream.log.append("record_stream")


class FakeCuda:
    """The few names of torch.cuda, noting their calls."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def Stream(self, device: torch.device) -> FakeCuda:  # noqa: N802
        return self

    def Event(self, *, blocking: bool) -> FakeCuda:  # noqa: N802
        return self

    @contextmanager
    def stream(self, side: FakeCuda) -> Iterator[None]:
        self.log.append("enter side")
        yield
        self.log.append("leave side")

    def current_stream(self, device: torch.device) -> FakeCuda:
        self.log.append("current")
        return self

    def record(self, stream: FakeCuda) -> None:
        self.log.append("record")

    def wait_event(self, event: FakeCuda) -> None:
        self.log.append("wait")


def test_cuda_copies_on_the_side_and_computes_behind_the_event(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeCuda()
    for name in ("Stream", "Event", "stream", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, getattr(fake, name))

    def copy() -> DeviceBatch:
        fake.log.append("copy")
        ids = torch.zeros(1).as_subclass(NotedTensor)
        return DeviceBatch(ids, ids, 0)

    streams = CudaStreams(torch.device("cuda"))
    streams.hand_over(*streams.launch(copy))
    assert fake.log[:4] == ["enter side", "copy", "record", "leave side"]
    assert fake.log[4:] == ["current", "wait", "record_stream", "record_stream"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint16"])
def test_on_a_real_device(data: Path, dtype: str) -> None:
    feeder = DeviceFeeder(Loader(data, **options(dtype=dtype)), "cuda")
    assert [tokens(batch) for batch in itertools.islice(feeder, STEPS)] == expected(data)


def test_copies_to_the_device_ask_not_to_block(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    to = torch.Tensor.to

    def noted(self: torch.Tensor, *args: Any, **settings: Any) -> torch.Tensor:
        asked.append(settings.get("non_blocking"))
        return to(self, *args, **settings)

    monkeypatch.setattr(torch.Tensor, "to", noted)
    place(Loader(data, **options(documents=True)).batch_at(0), CPU, torch.int64, non_blocking=True)
    assert asked.count(True) == 5
