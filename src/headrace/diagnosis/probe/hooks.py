"""Something to do right after a module was imported, if the script ever imports it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

Hook = Callable[[Any, Any], None]

_hooks: dict[str, list[tuple[Hook, Any]]] = {}


def after_import(name: str, hook: Hook, recording: Any) -> None:
    """Call hook(module, recording) once the module is there; what it raises is noted and goes no further."""
    if name in sys.modules:
        _run(hook, sys.modules[name], recording)
    else:
        _hooks.setdefault(name, []).append((hook, recording))


def install() -> None:
    sys.meta_path.insert(0, Finder())


def _run(hook: Hook, module: ModuleType, recording: Any) -> None:
    try:
        hook(module, recording)
    except Exception as error:
        recording.missing.append(f"{module.__name__} is not watched: {type(error).__name__}: {error}")


class Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself: it lets the others find, and puts the hooks behind the loading."""

    def __init__(self) -> None:
        self._busy = threading.local()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _hooks or getattr(self._busy, "name", None) == fullname:
            return None
        self._busy.name = fullname
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._busy.name = None
        if spec is not None and spec.loader is not None:
            _hook_into(spec.loader, fullname)
        return spec


def _hook_into(loader: Any, name: str) -> None:
    load = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        load(module)
        for hook, recording in _hooks.pop(name, ()):
            _run(hook, module, recording)

    loader.exec_module = exec_module
