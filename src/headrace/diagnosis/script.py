"""Run anybody's training script with the probe in it, and report where its steps spend their time."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from headrace.diagnosis.gpu_use import GpuUse
from headrace.diagnosis.report import PHASES, Report
from headrace.diagnosis.script_processes import (
    Family,
    Process,
    fold_of,
    label_of,
    outside_of_backward,
    read_family,
    steps_of,
    timeline_of,
)
from headrace.errors import UsageError

INJECTED = Path(__file__).parent / "inject"
WARMUP = 3
PASSED_ON = (signal.SIGTERM, signal.SIGHUP)
SHOWN = 500  # steps in the timeline of a report


def run_script(
    command: Sequence[str], *, out: Path | None = None, warmup: int = WARMUP, stdout: IO[Any] | None = None
) -> tuple[int, Report]:
    """The script's own exit code, and the report. Without `out` what the processes wrote is thrown away."""
    folder = _folder(out)
    try:
        with GpuUse() as gpu:
            code = _run(command, _environment(folder, warmup), stdout)
        report = report_of(command, read_family(folder), gpu)
        if out is not None:
            report.save(out / "report.json")
        return code, report
    finally:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)


def _folder(out: Path | None) -> Path:
    if out is None:
        return Path(tempfile.mkdtemp(prefix="headrace-diagnose-"))
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {out}: this folder cannot be made ({error.strerror}).") from error
    for old in (*out.glob("process-*.json"), *out.glob("failed-*.txt")):
        old.unlink()
    return out.resolve()


def _environment(folder: Path, warmup: int) -> dict[str, str]:
    path = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(INJECTED), *([path] if path else [])]),
        "HEADRACE_DIAGNOSE_OUT": str(folder),
        "HEADRACE_DIAGNOSE_WARMUP": str(warmup),
    }


def _run(command: Sequence[str], environment: dict[str, str], stdout: IO[Any] | None) -> int:
    try:
        child = subprocess.Popen(command, env=environment, stdout=stdout)
    except OSError as error:
        raise UsageError(
            f"{command[0]}: this command cannot be started ({error.strerror}). "
            "What follows `--` is run as it is: headrace diagnose run -- python train.py"
        ) from error
    with _signals_to(child):
        code = child.wait()
    return 128 - code if code < 0 else code


@contextmanager
def _signals_to(child: subprocess.Popen[Any]) -> Iterator[None]:
    """Ctrl-C reaches the script by itself, and there is still a report to write."""
    before = {signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None)}
    for number in PASSED_ON:
        before[number] = signal.signal(number, lambda received, _: child.send_signal(received))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def report_of(command: Sequence[str], family: Family, gpu: GpuUse) -> Report:
    if family.main is None:
        return Report(
            kind="run",
            subject=shlex.join(command),
            verdict="Nothing was measured.",
            missing=[*family.missing, _why_nothing(family)],
        )
    return _measured(command, family, family.main, gpu)


def _measured(command: Sequence[str], family: Family, main: Process, gpu: GpuUse) -> Report:
    from headrace.diagnosis.rules import judge, verdict
    from headrace.diagnosis.script_evidence import evidence_of

    evidence = evidence_of(family, gpu.share if main["cuda"] else None)
    missing = [*evidence.missing, *([gpu.missing] if main["cuda"] and gpu.missing else [])]
    return Report(
        kind="run",
        subject=shlex.join(command),
        verdict=verdict(evidence) + _whose(main, family),
        steps=evidence.steps,
        left_out=steps_of(main) - evidence.steps,
        step_ms=evidence.step_ms,
        tokens_per_second=evidence.tokens_per_second,
        cpu=evidence.cpu,
        gpu=evidence.gpu,
        phases=evidence.phases,
        fixes=judge(evidence),
        missing=missing,
        facts=_facts(family, main, gpu),
    )


def _whose(main: Process, family: Family) -> str:
    """Phases are those of one rank, and it is not always the first."""
    if not family.ranks or int(main["rank"] or 0) == 0:
        return ""
    first = min(family.ranks, key=lambda one: int(one["rank"]))
    later = (outside_of_backward(main) - outside_of_backward(first)) * 1e3
    return f" These are the phases of rank {main['rank']}, for which the others wait {later:,.0f} ms in every step."


def _why_nothing(family: Family) -> str:
    if not family.others:
        return (
            "no Python of the command loaded the probe, or none of them imported torch: python -I, -E and -S leave "
            "PYTHONPATH out"
        )
    return f"no optimizer stepped, in {len(family.others)} processes that imported torch"


def _facts(family: Family, main: Process, gpu: GpuUse) -> dict[str, Any]:
    first, rows = timeline_of(main, fold_of(main)["steps"])
    samples = main["samples"] or {}
    load = samples.get("load") or {}
    return {
        "timeline": _timeline(first, rows[:SHOWN]),
        "flame": dict(samples.get("stacks", [])),
        "processes": [_row(one, family) for one in (main, *family.ranks, *family.workers, *family.others)],
        "cores": load.get("cores", []),
        "background_ms": {name: seconds * 1e3 for name, seconds in main["background"].items()},
        "losses": main["losses"],
        "framework": main["framework"],
        "compiling_seconds": main["steps"]["compiling"],
        "torch": main["torch"],
        "python": main["python"],
        "gpu_memory": main["gpu"],
        "gpu_memory_in_use": gpu.memory,
    }


def _timeline(first: int, rows: list[dict[str, float]]) -> dict[str, Any]:
    phases = {name: [max(0.0, row.get(name, 0.0)) for row in rows] for name in PHASES}
    return {
        "steps": list(range(first, first + len(rows))),
        "phases": {name: values for name, values in phases.items() if any(values)},
    }


def _row(process: Process, family: Family) -> dict[str, Any]:
    part = "worker" if process in family.workers else "main" if process is family.main else label_of(process)
    steps = steps_of(process)
    fold = fold_of(process)
    return {
        "part": part,
        "pid": process["pid"],
        "steps": steps,
        "step_ms": fold["seconds"] * 1e3 / fold["steps"] if steps else None,
        "threads": process["threads"],
        "command": shlex.join(process["argv"]),
    }
