"""Report: where the time of a step goes, why, and what to change. Whatever diagnosis finds, it says in one of these."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from headrace.errors import UsageError
from headrace.files import write_atomically

VERSION = 1

# The phases of a step, in the order in which they happen. Their times exclude each other and add up to the step.
PHASES = (
    "tokenization",
    "data_wait",
    "host_to_device",
    "forward",
    "backward",
    "optimizer",
    "host_sync",
    "evaluation",
    "checkpoint",
    "logging",
    "python",  # everything else that the main thread did
)
MOST = 100.0  # times faster; more is promised to nobody
COMPUTE = ("forward", "backward", "optimizer")


class Site(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A line of somebody's code, and what it cost in a step."""

    file: str
    line: int
    function: str = ""
    code: str = ""  # the line itself
    what: str = ""  # what was called there, such as Tensor.item
    calls: float = 0.0  # in a step
    ms: float = 0.0  # in a step

    @property
    def place(self) -> str:
        return f"{Path(self.file).name}:{self.line}"


class Phase(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    ms: float  # in a step, on the main thread, without what other phases took inside it
    share: float
    sites: list[Site] = []  # the dearest first


class Fix(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One change worth making, and what it would bring."""

    rule: str  # its name in the table of rules
    title: str  # what is wrong, in a few words
    evidence: str  # the figures that say so
    advice: str  # what to write instead
    phase: str | None = None
    site: Site | None = None
    saves_ms: float = 0.0  # of a step
    speedup: float = 1.0  # of a step, if all of that went away


class Report(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    kind: str  # run, training, tokenization, data, sync
    subject: str  # the command, or the folder
    verdict: str
    steps: int = 0  # that were measured
    left_out: int = 0  # that were warm-up
    step_ms: float = 0.0
    tokens_per_second: float | None = None
    cpu: float | None = None  # share of all cores
    gpu: float | None = None
    phases: list[Phase] = []
    fixes: list[Fix] = []  # the best first
    missing: list[str] = []  # what could not be measured, and why
    facts: dict[str, Any] = {}  # what the kind has beside this
    version: int = VERSION

    def phase(self, name: str) -> Phase:
        return next((phase for phase in self.phases if phase.name == name), Phase(name=name, ms=0.0, share=0.0))

    def share(self, *names: str) -> float:
        """Of the step, of these phases together."""
        return sum(self.phase(name).share for name in names)

    def __str__(self) -> str:
        """The tree, as it is on a terminal."""
        from headrace.diagnosis.tree import plain_tree

        return plain_tree(self)

    def _repr_html_(self) -> str:
        from headrace.diagnosis.report_html import report_html

        return report_html(self)

    def save(self, path: Path) -> None:
        write_atomically(path, msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")


def load_report(path: Path) -> Report:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Report)
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such report. `headrace diagnose run --json` writes one.") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is no report of this version of headrace: {error}") from error


def phases_from(milliseconds: dict[str, float], sites: Iterable[tuple[str, Site]] = ()) -> list[Phase]:
    """Phases of a step in their order, with what takes no time left out."""
    total = sum(milliseconds.values())
    unknown = milliseconds.keys() - set(PHASES)
    assert not unknown, unknown
    by_phase: dict[str, list[Site]] = {name: [] for name in PHASES}
    for name, site in sites:
        by_phase[name].append(site)
    return [
        Phase(
            name=name,
            ms=milliseconds[name],
            share=milliseconds[name] / total if total else 0.0,
            sites=sorted(by_phase[name], key=lambda site: -site.ms),
        )
        for name in PHASES
        if milliseconds.get(name, 0.0) > 0
    ]


def speedup(step_ms: float, saves_ms: float) -> float:
    """How many times faster a step is without these milliseconds: Amdahl's law, and no step is free."""
    left = max(step_ms - saves_ms, step_ms / MOST)
    return step_ms / left if left > 0 else 1.0
