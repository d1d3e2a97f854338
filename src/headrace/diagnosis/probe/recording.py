"""Everything that one process knows about itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from .clock import Clock  # noqa: TID252
from .places import USER, kind_of, place  # noqa: TID252
from .steps import Steps  # noqa: TID252

LOSSES = 4000


class Recording:
    def __init__(self, warmup: int) -> None:
        self.warmup = warmup
        self.clock = Clock()
        self.missing: list[str] = []
        self.forked = False
        self.sampler: Any = None
        self.torch: Any = None
        self.skipped_by_dynamo: list[CodeType] = []
        self.reset()

    def reset(self) -> None:
        """Begin anew, as a forked child does; the hooks stay, because they look here."""
        self.clock.reset()
        self.steps = Steps(self.clock, self.warmup)
        self.inside = False  # of the forward pass of a top-level module
        self.evaluating = False
        self.computing = False  # between the start of a forward pass and the end of its backward pass
        self.cuda = False
        self.threads: int | None = None
        self.loop: set[CodeType] = set()  # functions that the training loop stands in
        self.loaders: dict[tuple[str, int], dict[str, Any]] = {}
        self.optimizers: dict[int, dict[str, Any]] = {}
        self.modules: set[int] = set()  # top-level ones, whose names are known
        self.names: dict[int, str] = {}  # of parameters, by their id
        self.tensors: dict[int, str] = {}  # of the optimizers
        self.with_gradient: set[int] = set()
        self.losses: list[float] = []
        self.loss_place: list[Any] | None = None
        self._losses_now: list[float] = []
        self.seen_ids = 0
        self.seen_pads = 0
        self.pad_place: list[Any] | None = None

    @property
    def mine(self) -> bool:
        """Whether there is anything to tell."""
        return self.torch is not None or bool(self.clock.sites)

    def note(self, phase: str, what: str, seconds: float, frame: FrameType | None, amount: float = 0.0) -> None:
        file, line, function, through = place(frame)
        self.clock.add((phase, what, file, line, function, through), seconds, amount)

    def miss(self, what: str, error: BaseException) -> None:
        text = f"{what}: {type(error).__name__}: {error}"
        if text not in self.missing and len(self.missing) < 20:
            self.missing.append(text)

    def guard(self, what: str, function: Callable[..., None], *args: Any) -> None:
        """Look at something of the script's; if that fails, the script does not notice."""
        try:
            function(*args)
        except Exception as error:
            self.miss(what, error)

    def saw_loss(self, value: float) -> None:
        self._losses_now.append(value)

    def step_ended(self) -> None:
        if not self.steps.finish():
            return
        if self._losses_now:
            self.losses.append(sum(self._losses_now) / len(self._losses_now))
            self._losses_now = []
            if len(self.losses) > LOSSES:
                del self.losses[::2]

    def learn_loop(self, frame: FrameType | None) -> None:
        """Functions that are on the stack when the model is called are the loop, not something that makes batches."""
        if self.steps.count < 20 and len(self.loop) < 50:
            while frame is not None:
                if kind_of(frame.f_code.co_filename) is USER:
                    self.loop.add(frame.f_code)
                frame = frame.f_back

    def as_dict(self) -> dict[str, Any]:
        return {
            "steps": self.steps.as_dict(),
            "tail": [[*key, *entry] for key, entry in self.clock.peek().items()],
            "background": dict(self.clock.background),
            "forked": self.forked,
            "cuda": self.cuda,
            "threads": self.threads,
            "torch": getattr(self.torch, "__version__", None),
            "loaders": list(self.loaders.values()),
            "optimizers": list(self.optimizers.values()),
            "without_gradient": self.without_gradient(),
            "losses": self.losses,
            "loss_place": self.loss_place,
            "ids": self.seen_ids,
            "pads": self.seen_pads,
            "pad_place": self.pad_place,
            "missing": self.missing,
            "argv": list(getattr(sys, "orig_argv", sys.argv)),
        }

    def without_gradient(self) -> list[str]:
        return [self.names.get(key, name) for key, name in list(self.tensors.items()) if key not in self.with_gradient]
