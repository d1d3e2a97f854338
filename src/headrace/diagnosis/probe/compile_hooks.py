"""torch.compile: the probe is not compiled, compiling is in no step, and a compiled training step still has phases."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from threading import get_ident
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from .batches import first_ids, look_at  # noqa: TID252
from .clock import OWN  # noqa: TID252
from .places import caller  # noqa: TID252
from .recording import Recording  # noqa: TID252
from .wrapping import MARK  # noqa: TID252


class Running(NamedTuple):
    """A compiled function that is being run."""

    name: str
    phase: str
    before: float  # seconds of the phase
    caller: Any  # frame


def leave_our_frames(module: Any, recording: Recording) -> None:
    """Dynamo takes up every frame under a compiled function, after a graph break ours too; those it is to leave."""
    for code in codes_of_the_probe():
        module.skip_code(code)


def codes_of_the_probe() -> Iterator[CodeType]:
    package = __name__.rpartition(".")[0]
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(package + "."):
            yield from codes_in(module)


def codes_in(module: ModuleType) -> Iterator[CodeType]:
    for value in list(vars(module).values()):
        functions = vars(value).values() if isinstance(value, type) else (value,)
        for function in functions:
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                yield from nested(function.__code__)


def nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)


def watch_compiling(module: Any, recording: Recording) -> None:
    """Compiling goes on for seconds in whichever step needs it, and is left out of that step."""
    clock = recording.clock
    began: list[float] = []

    def start(_: Any) -> None:
        if get_ident() == clock.thread:
            began.append(clock.enter("compile"))

    def end(_: Any) -> None:
        if get_ident() == clock.thread and began:
            clock.leave(began.pop())

    module.on_compile_start(start)
    module.on_compile_end(end)


def watch_compile(torch: Any, recording: Recording) -> None:
    original = torch.compile

    @functools.wraps(original)
    def compile_it(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        compiled = original(model, *args, **kwargs)
        # Modules are watched where they are called; without a model this is a decorator, which comes here again.
        if model is None or not inspect.isfunction(compiled) or hasattr(compiled, MARK):
            return compiled
        return timed_function(torch, recording, compiled)

    torch.compile = compile_it


def timed_function(torch: Any, recording: Recording, function: Callable[..., Any]) -> Callable[..., Any]:
    clock, compiling = recording.clock, torch.compiler.is_compiling
    name = f"compiled {getattr(function, '__name__', 'function')}"

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if compiling() or get_ident() != clock.thread or clock.stack[-1] != "python":
            return function(*args, **kwargs)
        phase = phase_of(recording, args, kwargs, torch.is_grad_enabled())
        if phase is None:
            return function(*args, **kwargs)
        steps, versions = recording.steps.count, recording.versions()
        recording.running = Running(name, phase, clock.enter(phase), sys._getframe().f_back)
        try:
            return function(*args, **kwargs)
        finally:
            finish(recording, steps, versions)

    setattr(call, MARK, True)
    return call


def phase_of(recording: Recording, args: Any, kwargs: Any, grad: bool) -> str | None:
    """None where it is neither trained nor evaluated, but something else, such as an average of the weights."""
    before = recording.clock.enter(OWN)
    try:
        if grad:
            recording.learn_loop(caller(2))
            recording.evaluating = False
            look_at(recording, args, kwargs)
            return "forward"
        return "evaluation" if recording.evaluating or first_ids(recording, args, kwargs) is not None else None
    except Exception as error:
        recording.miss("inputs of a compiled function", error)
        return None
    finally:
        recording.clock.leave(before)


def turn_to_the_optimizer(recording: Recording) -> None:
    """In a compiled step, what follows its backward pass is the optimizer."""
    running, clock = recording.running, recording.clock
    if running is None or clock.stack[-1] != running.phase:
        return
    clock.turn("optimizer")
    recording.note(running.phase, running.name, max(0.0, clock.times[running.phase] - running.before), running.caller)
    recording.running = running._replace(phase="optimizer", before=clock.times["optimizer"])


def finish(recording: Recording, steps: int, versions: int) -> None:
    running, clock = recording.running, recording.clock
    recording.running = None
    ended = recording.steps.count != steps  # by an optimizer that was not compiled: the clock began anew
    seconds = clock.leave(0.0 if ended else running.before)
    stepped = not ended and recording.versions() != versions
    phase = running.phase
    if stepped and phase == "forward" and recording.steps.backwards:  # only the optimizer is compiled
        clock.times["forward"] -= seconds
        clock.times["optimizer"] += seconds
        phase = "optimizer"
    recording.note(phase, running.name, seconds, running.caller)
    if stepped:
        recording.steps.backwards = max(1, recording.steps.backwards)
        recording.computing = False
        recording.step_ended(0)


HOOKS = {
    "torch": watch_compile,
    "torch._dynamo.eval_frame": leave_our_frames,
    "torch._dynamo.callback": watch_compiling,
}
