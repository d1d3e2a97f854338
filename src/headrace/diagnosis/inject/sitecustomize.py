"""Loaded by every Python that starts with this folder on PYTHONPATH. Whatever goes wrong here, the script still runs.

The script's Python may be another environment, without headrace. So the probe is loaded from its folder, under a
name of its own, and this folder leaves sys.path again: nothing of the script's is shadowed.
"""

import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROBE = os.path.join(os.path.dirname(HERE), "probe")
NAME = "_headrace_probe"


def start_probe() -> None:
    folder = os.environ.get("HEADRACE_DIAGNOSE_OUT")
    if not folder or NAME in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(
        NAME, os.path.join(PROBE, "__init__.py"), submodule_search_locations=[PROBE]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    module.install(folder, int(os.environ.get("HEADRACE_DIAGNOSE_WARMUP", "3")))


def note_failure(error: BaseException) -> None:
    """For the report; the script's own output stays untouched."""
    try:
        path = os.path.join(os.environ["HEADRACE_DIAGNOSE_OUT"], f"failed-{os.getpid()}.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{type(error).__name__}: {error}")
    except Exception:
        pass


def load_the_other_sitecustomize() -> None:
    """The environment's own, which this one stands before."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    start_probe()
except Exception as error:
    note_failure(error)
load_the_other_sitecustomize()
