"""Everything that one process knows about itself."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from .clock import Clock, Key  # noqa: TID252
from .places import LIBRARY, USER, framework_of, kind_of, place  # noqa: TID252
from .rhythm import Rhythm  # noqa: TID252
from .steps import Steps  # noqa: TID252

LOSSES = 4000
SPOTS = 10_000


class Recording:
    def __init__(self, warmup: int) -> None:
        self.warmup = warmup
        self.clock = Clock()
        self.missing: list[str] = []
        self._spots: dict[tuple[int, int, str, str], tuple[Key, CodeType]] = {}
        self.forked = False
        self.sampler: Any = None
        self.torch: Any = None
        self.compiling: Callable[[], bool] = _never
        self.reset()

    def reset(self) -> None:
        """Begin anew, as a forked child does; the hooks stay, because they look here."""
        self.clock.reset()
        self.steps = Steps(self.clock, self.warmup)
        self.rhythm = Rhythm()
        self.running: Any = None  # a compiled function
        self.stepped_on: dict[int, list[Any]] = {}  # some parameters of every optimizer
        self.python_before = 0.0  # when the last forward pass ended
        self.rank: int | None = None
        self.framework = ""  # whose loop it is, if it is not the user's own
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
        if frame is None:
            self.clock.add((phase, what, *place(frame)), seconds, amount)
            return
        code = frame.f_code
        # Some lines come here thousands of times in a step. A code object's own hash goes through all of its bytes.
        spot = (id(code), frame.f_lasti, phase, what)
        known = self._spots.get(spot)
        if known is None:
            known = (phase, what, *place(frame)), code  # kept, so that its id stays its own
            if kind_of(code.co_filename) is USER and len(self._spots) < SPOTS:  # others have many callers
                self._spots[spot] = known
        self.clock.add(known[0], seconds, amount)

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

    def step_ended(self, who: int) -> None:
        """An optimizer stepped. One with no backward pass of its own only follows another, and ends nothing."""
        if not self.steps.backwards or not self.rhythm.beat(who):
            return
        self.steps.finish()
        if size := self.rhythm.found():
            self.steps.regroup(size)
        if self.steps.count <= 3:
            self.guard("the process", self.learn_about_itself)
        if self._losses_now:
            self.losses.append(sum(self._losses_now) / len(self._losses_now))
            self._losses_now = []
            if len(self.losses) > LOSSES:
                del self.losses[::2]

    def evaluation_goes_on(self) -> None:
        """Between two forward passes of one evaluation all is evaluation."""
        times = self.clock.times
        if self.evaluating and times["python"] > self.python_before:
            times["evaluation"] += times["python"] - self.python_before
            times["python"] = self.python_before
        self.evaluating = True

    def versions(self) -> int:
        """Another number once an optimizer has stepped, in compiled code too."""
        return sum(parameter._version for parameter in self.some_parameters())

    def some_parameters(self) -> list[Any]:
        found = [reference() for entry in self.stepped_on.values() for reference in entry]
        return [parameter for parameter in found if parameter is not None]

    def learn_about_itself(self) -> None:
        self.threads = self.torch.get_num_threads()
        self.cuda = self.cuda or any(parameter.is_cuda for parameter in self.some_parameters())
        distributed = self.torch.distributed
        if distributed.is_available() and distributed.is_initialized():
            self.rank = distributed.get_rank()

    def learn_loop(self, frame: FrameType | None) -> None:
        """Functions that are on the stack when the model is called are the loop, not something that makes batches."""
        if self.steps.count >= 20 or len(self.loop) >= 50:
            return
        while frame is not None:
            kind = kind_of(frame.f_code.co_filename)
            if kind is USER:
                self.loop.add(frame.f_code)
            elif kind is LIBRARY and not self.framework:
                self.framework = framework_of(frame.f_code.co_filename)
            frame = frame.f_back

    def as_dict(self) -> dict[str, Any]:
        return {
            "steps": self.steps.as_dict(),
            "tail": [[*key, *entry] for key, entry in self.clock.peek().items()],
            "background": dict(self.clock.background),
            "forked": self.forked,
            "cuda": self.cuda,
            "threads": self.threads,
            "framework": self.framework,
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


def _never() -> bool:
    return False
