"""Plan, run, resume: what turns a source into a dataset."""

from headrace.pipeline.config import PrepareConfig
from headrace.pipeline.plan import Plan, Task, make_plan
from headrace.pipeline.progress import Observer, Progress
from headrace.pipeline.run import open_config_source, plan_for, prepare, run_prepare

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
]
