"""`headrace diagnose sync`: which lines of a CUDA script make the CPU wait for the GPU, with or without a GPU."""

from __future__ import annotations

import linecache
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from headrace.diagnosis.fake_cuda.result import Record, Sync
from headrace.diagnosis.report import Fix, Report, Site
from headrace.diagnosis.sync_kinds import KINDS, advice_for, kind_of
from headrace.errors import HeadraceError, UsageError

CHILD = "headrace.diagnosis.fake_cuda.run_script"
STEPS = 20
STDERR = 2
RARE = 0.25  # a step: what happens once in four steps or less is what the advice asks for
PYTHON = re.compile(r"python[0-9.]*$")
FAKE_LIMITS = [
    "There was no GPU, so values on the device are invented (numbers are 1, bools False): branches on them may differ.",
    "Backward was not run and nothing compiled: syncs in backward, gradient hooks and compiled code are not seen.",
    "Processes that the script starts are not looked into. How long a sync takes only a GPU can tell.",
    "Trainers that save within these steps may leave a folder without weights: give the script an output of its own.",
]
GPU_LIMITS = [
    "torch.cuda.set_sync_debug_mode does not see every sync: not in torch.distributed, torch.sparse or synchronize().",
]


class Found(msgspec.Struct, kw_only=True):
    """A kind of sync at a line."""

    kind: str
    site: Site
    through: str
    per_step: float
    total: int


def diagnose_sync(command: list[str], *, steps: int = STEPS, quiet: bool = False) -> Report:
    """Run the command in a process of its own and say where it waits; `quiet` sends what it prints to stderr."""
    if steps < 1:
        raise UsageError(f"--steps {steps}: at least one step has to be counted.")
    script = python_words(command)
    with tempfile.TemporaryDirectory() as folder:
        record = _run(script, Path(folder) / "record.json", steps, quiet)
    return build_report(shlex.join(command), record)


def python_words(command: list[str]) -> list[str]:
    """What comes after `python`: a script or `-m module`, and its arguments."""
    name, *words = command or [""]
    if name.endswith(".py"):
        name, words = "python", command
    if not PYTHON.search(Path(name).name):
        raise UsageError(
            f"{name or 'No command'}: syncs are found in one Python process, so give the script itself: "
            "`headrace diagnose sync -- python train.py ARGS` or `-- python -m package.train ARGS` (for torchrun or "
            "accelerate, the script that they start, as one process)."
        )
    while words and words[0] in ("-u", "-O", "-B"):
        words = words[1:]
    if not words or (words[0].startswith("-") and (words[0] != "-m" or len(words) < 2)):
        raise UsageError(
            f"{shlex.join(command)}: after python comes a script or `-m module`, not {words[:1] or 'nothing'}."
        )
    if words[0] != "-m" and not Path(words[0]).is_file():
        raise UsageError(f"{words[0]}: there is no such script in {Path.cwd()}.")
    return words


def _run(script: list[str], out: Path, steps: int, quiet: bool) -> Record:
    child = subprocess.Popen(
        [sys.executable, "-m", CHILD, str(out), str(steps), *script],
        env={**os.environ, "PYTHONPATH": _python_path()},
        stdout=STDERR if quiet else None,
    )
    code = _wait(child)
    if not out.exists():
        raise HeadraceError(f"{shlex.join(script)} ended with exit code {code} before anything was recorded.")
    record = msgspec.json.decode(out.read_bytes(), type=Record)
    if record.refused:
        raise HeadraceError(record.refused)
    return record


def _wait(child: subprocess.Popen[Any]) -> int:
    """Ctrl-C reaches the child too, which then writes what it has."""
    try:
        return child.wait()
    except KeyboardInterrupt:
        return child.wait()


def _python_path() -> str:
    home = str(Path(__file__).parents[2])
    return os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])


def build_report(subject: str, record: Record) -> Report:
    found = find(record)
    in_loop = [item for item in found if item.per_step > RARE]
    rare = [item for item in found if 0 < item.per_step <= RARE]
    return Report(
        kind="sync",
        subject=subject,
        verdict=verdict(record, in_loop, rare),
        steps=counted_steps(record),
        left_out=min(record.steps, 1),
        fixes=[_fix(item) for item in in_loop],
        missing=_missing(record),
        facts={
            "mode": record.mode,
            "torch": record.torch,
            "rare": [_fact(item) for item in rare],
            "set_up": [_fact(item) for item in found if item.per_step == 0],
        },
    )


def counted_steps(record: Record) -> int:
    """The first step is left out: what came before it was set-up."""
    return max(record.steps - 1, 0) or min(record.steps, 1)


def find(record: Record) -> list[Found]:
    """Most often first; what happens outside the counted steps has 0 a step."""
    merged: dict[tuple[str, str, int, str], Found] = {}
    for sync in record.syncs:
        kind = kind_of(sync.kind, sync.through)
        inside = sum(count for step, count in sync.counts.items() if _counts(record, step))
        rate = inside / max(counted_steps(record), 1)
        item = merged.setdefault(
            (kind, sync.file, sync.line, sync.through),
            Found(kind=kind, site=_site(sync), through=sync.through, per_step=0.0, total=0),
        )
        item.per_step += rate
        item.total += sum(sync.counts.values())
    for item in merged.values():
        item.site.calls, item.site.what = item.per_step, item.kind
    return sorted(merged.values(), key=_rank)


def _rank(item: Found) -> tuple[float, bool, bool, int]:
    """Often before seldom, waits before copies, the user's own line before what torch or a library does."""
    return (-item.per_step, KINDS[item.kind].copy, bool(item.through), item.site.line)


def _counts(record: Record, step: int) -> bool:
    """Between two steps of the optimizer; with fewer than two steps, everything."""
    return record.steps < 2 or 1 <= step < record.steps


def _site(sync: Sync) -> Site:
    code = linecache.getline(sync.file, sync.line).strip()
    return Site(file=sync.file, line=sync.line, function=sync.function, code=code)


def _fix(item: Found) -> Fix:
    kind = KINDS[item.kind]
    through = f", in {item.through}" if item.through else ""
    return Fix(
        rule=f"sync_{item.kind}",
        title=kind.title,
        evidence=f"{often(item.per_step)}{through}",
        advice=advice_for(item.kind, item.through),
        phase="host_to_device" if kind.copy else "host_sync",
        site=item.site,
    )


def often(per_step: float) -> str:
    """3 times a step; 0.1 times a step (once in 10 steps)."""
    if per_step == 1:
        return "once a step"
    figure = f"{per_step:,.0f} times a step" if per_step >= 100 else f"{per_step:.3g} times a step"
    return figure if per_step >= 1 or not per_step else f"{figure} (once in {1 / per_step:.3g} steps)"


def _fact(item: Found) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "place": item.site.place,
        "code": item.site.code,
        "through": item.through,
        "per_step": item.per_step,
        "total": item.total,
    }


def verdict(record: Record, in_loop: list[Found], rare: list[Found]) -> str:
    waits = [item for item in in_loop if not KINDS[item.kind].copy]
    copies = [item for item in in_loop if KINDS[item.kind].copy]
    aside = (
        "; " + "; ".join(f"{item.site.place} {often(item.per_step)}, which is fine" for item in rare) if rare else ""
    )
    if not record.steps:
        return f"No step of an optimizer was seen: {len(in_loop)} lines wait for the GPU in the whole of the script."
    if not in_loop:
        return f"Nothing waits for the GPU in the loop{aside}."
    parts = []
    if waits:
        total = sum(item.per_step for item in waits)
        parts.append(f"the CPU waits for the GPU {often(total)}, in {_lines(waits)}")
    if copies:
        parts.append(
            f"{often(sum(item.per_step for item in copies))} a copy to the GPU holds it up, in {_lines(copies)}"
        )
    text = "; ".join(parts)
    return text[0].upper() + text[1:] + aside + "."


def _lines(items: list[Found]) -> str:
    count = len({(item.site.file, item.site.line) for item in items})
    return "1 line" if count == 1 else f"{count} lines"


def _missing(record: Record) -> list[str]:
    missing = []
    if record.error:
        missing.append(f"The script ended early, after {record.steps:,} steps: {record.error}")
    if record.steps == 1:
        missing.append("Only one step was made, so set-up and loop could not be told apart.")
    if record.unsaved:
        missing.append(f"{record.unsaved:,} checkpoints were not written: their numbers would have been invented.")
    return missing + (FAKE_LIMITS if record.mode == "fake" else GPU_LIMITS)
