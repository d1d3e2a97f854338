"""Plan, run, resume: what turns a source into a dataset.

Names are imported on first use: a worker needs a part of them only, and workers start before the rest is imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.pipeline.config import PrepareConfig
    from headrace.pipeline.plan import Plan, Task, make_plan
    from headrace.pipeline.progress import Observer, Progress
    from headrace.pipeline.run import open_config_source, plan_for
    from headrace.pipeline.start import prepare, run_prepare, run_share

__all__ = [
    "Observer",
    "Plan",
    "PrepareConfig",
    "Progress",
    "Task",
    "make_plan",
    "open_config_source",
    "plan_for",
    "prepare",
    "run_prepare",
    "run_share",
]

_HOMES = {
    "Observer": "progress",
    "Plan": "plan",
    "PrepareConfig": "config",
    "Progress": "progress",
    "Task": "plan",
    "make_plan": "plan",
    "open_config_source": "run",
    "plan_for": "run",
    "prepare": "start",
    "run_prepare": "start",
    "run_share": "start",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'headrace.pipeline' has no attribute {name!r}")
    value = getattr(import_module(f"headrace.pipeline.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
