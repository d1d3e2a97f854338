"""The child process: `python -m headrace.diagnosis.fake_cuda.run_script OUT STEPS script.py ARGS` (or `-m module`).

It runs the script and writes what was recorded to OUT, also when the script fails or is stopped after its steps.
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import torch

from headrace.diagnosis.fake_cuda.install import fake_cuda
from headrace.diagnosis.fake_cuda.record import EnoughSteps, Recorder
from headrace.diagnosis.fake_cuda.with_gpu import watched_gpu
from headrace.errors import HeadraceError


def main(words: list[str]) -> int:
    out, steps, *command = words
    gpu = torch.cuda.is_available()
    recorder = Recorder(mode="gpu" if gpu else "fake", stop_after=int(steps) + 1)  # the first is set-up
    process = os.getpid()
    try:
        with _device(recorder, gpu):
            recorder.record.error = run(command)
    except HeadraceError as error:
        recorder.record.refused = str(error)
        return 1
    finally:
        if os.getpid() == process:  # and not in a DataLoader worker that was forked from it
            Path(out).write_bytes(msgspec.json.encode(recorder.record))
    return 0


def _device(recorder: Recorder, gpu: bool) -> AbstractContextManager[None]:
    return watched_gpu(recorder) if gpu else fake_cuda(recorder)


def run(command: list[str]) -> str | None:
    """Run the script as `python` would; give the error that ended it."""
    try:
        if command[0] == "-m":
            sys.argv = command[1:]
            sys.path.insert(0, "")
            runpy.run_module(command[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = command
            script = Path(command[0]).resolve()
            sys.path.insert(0, str(script.parent))
            runpy.run_path(str(script), run_name="__main__")
    except EnoughSteps:
        return None
    except SystemExit as stop:
        return None if stop.code in (None, 0) else f"SystemExit: {stop.code}"
    except KeyboardInterrupt:
        return "KeyboardInterrupt: stopped by hand"
    except BaseException as error:
        traceback.print_exc()
        return f"{type(error).__name__}: {error}"
    return None


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.exit(code)
