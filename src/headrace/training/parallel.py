"""The ranks of a run: one process, or those that torchrun started. What they share goes through a Group."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from headrace.errors import HeadraceError, TrainingFailed, UsageError
from headrace.training.heartbeat import Heartbeat
from headrace.training.randomness import seed_rank
from headrace.training.stopping import StopRequest

T = TypeVar("T")
AUTO, NONE, DDP, FSDP = "auto", "none", "ddp", "fsdp"
KINDS = (AUTO, NONE, DDP, FSDP)
TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
# Dead ranks are found by their heartbeat. This is for living ones that wait for each other for ever; a rank may have to
# wait long where rank 0 writes a large checkpoint or text to slow storage.
TIMEOUT = timedelta(minutes=30)
STORE_TIMEOUT = timedelta(seconds=10)


class FailedOnMain(HeadraceError):
    """Rank 0 has said what went wrong; the others only end."""

    def __init__(self, text: str, exit_code: int) -> None:
        super().__init__(text)
        self.exit_code = exit_code


class Group:
    """One process by itself: what ranks would share costs nothing."""

    kind, rank, world_size = NONE, 0, 1

    @property
    def main(self) -> bool:
        """Whether this rank records, prints and writes for all."""
        return self.rank == 0

    def device(self, asked: str) -> str:
        """The device of this rank, where all were asked for the same."""
        return asked

    def total(self, tensor: Tensor) -> Tensor:
        """The sum over all ranks, in the tensor's own memory."""
        return tensor

    def mean(self, tensor: Tensor) -> Tensor:
        return tensor

    def on_main(self, action: Callable[[], T]) -> T:
        """What rank 0 gets by doing it, once it is done; what goes wrong there ends the others too."""
        return action()

    def gathered(self, value: T) -> list[T]:
        """One value from each rank, on all of them."""
        return [value]

    def stops(self, step: int, stop: StopRequest) -> bool:
        """Whether the next step is not to be done; all ranks get the same answer for the same step."""
        return bool(stop)

    def stopped_by(self, stop: StopRequest) -> str:
        return stop.signal.name if stop.signal is not None else "a signal"

    def part_ways(self, seed: int, step: int) -> None:
        """Ranks draw different random numbers from here on."""

    @contextmanager
    def named(self) -> Iterator[None]:
        """A collective that fails because a rank has died says which."""
        yield


class Ranks(Group):
    """The processes of a torchrun, which have a process group."""

    def __init__(self, kind: str, device: str, heartbeat: Heartbeat) -> None:
        self.kind, self.rank, self.world_size = kind, dist.get_rank(), dist.get_world_size()
        self._device, self._heartbeat = device, heartbeat

    def device(self, asked: str) -> str:
        return self._device

    def total(self, tensor: Tensor) -> Tensor:
        dist.all_reduce(tensor)
        return tensor

    def mean(self, tensor: Tensor) -> Tensor:
        return self.total(tensor).div_(self.world_size)

    def on_main(self, action: Callable[[], T]) -> T:
        told: list[Any] = [None, None, 0]
        failure: HeadraceError | None = None
        if self.main:
            try:
                told[0] = action()
            except HeadraceError as error:
                failure, told[1:] = error, [str(error), error.exit_code]
        dist.broadcast_object_list(told, src=0)
        if failure is not None:
            raise failure
        if told[1] is not None:
            raise FailedOnMain(told[1], told[2])
        return told[0]  # type: ignore[no-any-return]

    def gathered(self, value: T) -> list[T]:
        found: list[Any] = [None] * self.world_size
        dist.all_gather_object(found, value)
        return found

    def stops(self, step: int, stop: StopRequest) -> bool:
        return self._heartbeat.stops(step, stop.signal.name if stop.signal is not None else None)

    def stopped_by(self, stop: StopRequest) -> str:
        return self._heartbeat.stopped_by

    def part_ways(self, seed: int, step: int) -> None:
        if not self.main:  # rank 0 draws what one process would
            seed_rank(seed, self.rank, step)

    @contextmanager
    def named(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            cause = self._heartbeat.cause() if _from_collective(error) else None
            if cause is None:
                raise
            raise TrainingFailed(cause) from error


@contextmanager
def start_group(kind: str = AUTO, device: str = AUTO) -> Iterator[Group]:
    """The ranks that torchrun started, as long as the block runs; one process where nobody started any.

    Once per process: torch finds the addresses of the group before in the store, and ranks may wait for each other.
    """
    if kind not in KINDS:
        raise UsageError(f"parallel {kind!r}: it must be one of {', '.join(KINDS)}.")
    if not all(name in os.environ for name in TORCHRUN):
        if kind in (DDP, FSDP):
            raise UsageError(
                f"--parallel {kind} needs several processes. Run: torchrun --nproc-per-node 2 -m headrace train ..."
            )
        yield Group()
        return
    if kind == NONE:
        raise UsageError("--parallel none under torchrun: its processes would all do the same. Run without torchrun.")
    yield from _ranks(DDP if kind == AUTO else kind, device)


def _ranks(kind: str, device: str) -> Iterator[Group]:
    device = _take_device(device)
    dist.init_process_group("gloo" if device == "cpu" else "nccl", timeout=TIMEOUT)
    heartbeat = Heartbeat(_own_store(), dist.get_rank(), dist.get_world_size())
    try:
        dist.barrier()  # every rank has its first beat in the store
        heartbeat.start()
        ranks = Ranks(kind, device, heartbeat)
        with ranks.named():
            yield ranks
            dist.barrier()  # nobody leaves while rank 0 still writes
    except BaseException as error:
        _ignore_terminate()
        if heartbeat.agreed(error):
            dist.barrier()
        heartbeat.close(None if isinstance(error, FailedOnMain) else error)
        raise  # the process group is left as it is: taking it down may wait for a rank that is dead
    heartbeat.close()
    dist.destroy_process_group()


def _ignore_terminate() -> None:
    """This process ends anyway. torchrun ends it too as soon as another has: its signal must not hide the reason."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _take_device(name: str) -> str:
    """Of the GPUs of a machine each rank takes its own."""
    if name not in (AUTO, "cuda", "cpu"):
        raise UsageError(f"--device {name} under torchrun: each rank takes its own. Use --device cuda, cpu or auto.")
    if name == "cpu" or (name == AUTO and not torch.cuda.is_available()):
        return "cpu"
    local, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if local >= count:
        instead = f"--nproc-per-node {count}" if count else "--device cpu"
        raise UsageError(f"No GPU for rank {local} of this machine, which has {count}. Use {instead}.")
    torch.cuda.set_device(local)
    return f"cuda:{local}"


def _own_store() -> Any:
    """A connection of the heartbeat's own: one that the process group uses may be waiting."""
    torch_dist: Any = dist
    store = torch_dist.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        is_master=False,
        wait_for_workers=False,
        timeout=STORE_TIMEOUT,
    )
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return torch_dist.PrefixStore(f"headrace/{attempt}", store)


def _from_collective(error: RuntimeError) -> bool:
    """gloo raises plain RuntimeErrors, which name it."""
    return isinstance(error, dist.DistError) or any(word in str(error).lower() for word in ("gloo", "nccl", "socket"))
