"""Functions that are timed: the same to their callers, and a microsecond or two dearer."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from threading import get_ident
from time import perf_counter
from typing import Any

from .recording import Recording  # noqa: TID252

MARK = "__headrace_probe__"


def timed(
    recording: Recording,
    function: Callable[..., Any],
    phase: str,
    what: str,
    amount: Callable[..., float] | None = None,
) -> Callable[..., Any]:
    """The function, its time counted for the phase and for the line that called it."""
    clock = recording.clock

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if recording.compiling():
            return function(*args, **kwargs)
        if get_ident() != clock.thread:
            return beside(recording, function, phase, args, kwargs)
        if clock.within(phase):
            return function(*args, **kwargs)
        before = clock.enter(phase)
        try:
            return function(*args, **kwargs)
        finally:
            seconds = clock.leave(before)
            recording.note(phase, what, seconds, sys._getframe().f_back, amount(*args, **kwargs) if amount else 0.0)

    setattr(call, MARK, True)
    return call


def beside(
    recording: Recording, function: Callable[..., Any], phase: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """In another thread, whose time is not the step's."""
    began = perf_counter()
    try:
        return function(*args, **kwargs)
    finally:
        recording.clock.background[phase] += perf_counter() - began


def wrap(
    recording: Recording,
    owner: Any,
    name: str,
    phase: str,
    what: str = "",
    amount: Callable[..., float] | None = None,
) -> bool:
    """Put the timed function in the place of the owner's, once."""
    function = getattr(owner, name, None)
    if function is None or hasattr(function, MARK):
        return function is not None
    setattr(owner, name, timed(recording, function, phase, what or f"{owner.__name__}.{name}", amount))
    return True


class Stand:
    """In the place of a builtin: unlike a Python function it does not become a method when a class holds it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)
