"""A run that is resumed computes the same bits as one that never stopped; a killed one leaves a whole checkpoint."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from headrace.training.checkpoint import Checkpoints
from headrace.training.randomness import restore_rng, rng_state

MakeOptimizer = Callable[[Any], torch.optim.Optimizer]


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(64, 96)
        self.body = nn.Sequential(nn.Linear(96, 96), nn.GELU(), nn.Dropout(0.2))
        self.head = nn.Linear(96, 64, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.embed(tokens)))  # type: ignore[no-any-return]


class Run:
    """The smallest loop with everything in it that has a state."""

    def __init__(self, make_optimizer: MakeOptimizer) -> None:
        torch.manual_seed(0)
        self.model = Tied()
        self.optimizer = make_optimizer(self.model.parameters())
        self.schedule = torch.optim.lr_scheduler.SequentialLR(
            self.optimizer,
            [
                torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.1, total_iters=3),
                torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 20),
            ],
            milestones=[3],
        )

    def train(self, count: int) -> list[float]:
        losses = []
        for _ in range(count):
            tokens = torch.randint(64, (4, 9))
            loss = nn.functional.cross_entropy(self.model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            self.schedule.step()
            losses.append(loss.item())
        return losses

    def save(self, checkpoints: Checkpoints, step: int) -> None:
        state = {
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "scaler": torch.amp.GradScaler("cpu").state_dict(),
            "rng": rng_state(),
        }
        checkpoints.save(step, self.model.state_dict(), state, manifest={"model": {"width": 96}})

    def resume(self, checkpoints: Checkpoints) -> None:
        loaded = checkpoints.latest()
        assert loaded is not None
        self.model.load_state_dict(loaded.model_state)
        self.optimizer.load_state_dict(loaded.state["optimizer"])
        self.schedule.load_state_dict(loaded.state["schedule"])
        restore_rng(loaded.state["rng"])


@pytest.fixture(autouse=True)
def _leave_no_trace() -> Iterator[None]:
    before = rng_state()
    yield
    restore_rng(before)


def adam8bit(parameters: Any) -> torch.optim.Optimizer:
    optimizers = pytest.importorskip("bitsandbytes.optim")
    optimizer: torch.optim.Optimizer = optimizers.Adam8bit(parameters, lr=1e-2, min_8bit_size=1024)
    return optimizer


@pytest.mark.parametrize(
    "make_optimizer",
    [
        lambda parameters: torch.optim.AdamW(parameters, lr=1e-2),
        lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
        adam8bit,
    ],
    ids=["AdamW", "SGD", "Adam8bit"],
)
def test_resume_is_exact(tmp_path: Path, make_optimizer: MakeOptimizer) -> None:
    run = Run(make_optimizer)
    with Checkpoints(tmp_path) as checkpoints:
        run.train(5)
        run.save(checkpoints, 5)
        expected = run.train(6)
    assert len(set(expected)) == 6
    resumed = Run(make_optimizer)
    resumed.train(2)
    resumed.resume(Checkpoints(tmp_path))
    assert resumed.train(6) == expected
    assert resumed.model.head.weight is resumed.model.embed.weight
    for name, value in run.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], value), name


def test_the_8_bit_state_is_stored_in_8_bits(tmp_path: Path) -> None:
    run = Run(adam8bit)
    run.train(1)
    with Checkpoints(tmp_path) as checkpoints:
        run.save(checkpoints, 1)
    stored = Checkpoints(tmp_path).at(1).state["optimizer"]["state"]
    types = {tensor.dtype for tensor in tensors_in(stored) if tensor.numel() >= 1024}
    assert types == {torch.uint8}


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for entry in value.values():
            yield from tensors_in(entry)


# One process imports torch and forks the writers that it kills: a new interpreter for each would take seconds.
KILL_WRITERS = """
import itertools, os, random, signal, sys, time
from pathlib import Path
import torch
from headrace.training.checkpoint import Checkpoints

torch.set_num_threads(1)  # OpenMP's threads do not survive a fork, and its next loop waits for them
folder, kills = Path(sys.argv[1]), int(sys.argv[2])
delays = random.Random(3)

def save_for_ever(pipe):
    with Checkpoints(folder, keep_last=2) as checkpoints:
        before = checkpoints.latest()
        for step in itertools.count(before.step + 1 if before else 1):
            value = torch.full((50_000,), float(step))
            for _ in range(2):  # the second replaces the first, and waits until that is on the disk
                metrics = {"val_loss": abs(step % 7 - 3)}
                checkpoints.save(step, {"w": value}, {"m": value, "step": step}, manifest={"metrics": metrics})
            os.write(pipe, b"%d\\n" % step)

def kill_one():
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        save_for_ever(write)
    os.close(write)
    told = os.read(read, 100)  # it is saving now
    time.sleep(delays.random() * 0.1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    told += os.read(read, 100_000)
    os.close(read)
    return int(told.split()[-1])

cut_short, last = 0, 0
for _ in range(kills):
    told = kill_one()
    cut_short += any(path.name.startswith((".writing", ".deleting", ".replaced")) for path in folder.iterdir())
    said = []
    with Checkpoints(folder, report=said.append) as checkpoints:
        loaded, best = checkpoints.latest(), checkpoints.best()
    assert not said, said
    assert loaded.step >= told > last, (loaded.step, told, last)
    assert loaded.step == loaded.state["step"]
    assert torch.equal(loaded.model_state["w"], torch.full((50_000,), float(loaded.step)))
    assert torch.equal(loaded.state["m"], loaded.model_state["w"])
    assert best.manifest.metrics["val_loss"] <= loaded.manifest.metrics["val_loss"]
    last = told
print(cut_short)
"""


def test_killed_at_any_moment(tmp_path: Path) -> None:
    run = [sys.executable, "-c", KILL_WRITERS, str(tmp_path), "25"]
    result = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) > 0, "no kill came in the middle of a save, so nothing was tried"
    assert all(path.name == ".lock" or path.name.startswith("step-") for path in tmp_path.iterdir())
    assert len(list(tmp_path.glob("step-*"))) <= 4  # the last two, the best, and one that was about to go
