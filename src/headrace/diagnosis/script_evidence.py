"""What the probes saw, as evidence for the rules."""

from __future__ import annotations

import statistics
from typing import Any

from headrace.diagnosis.evidence import Copies, Evidence, Loading, Optimizing, Stall, Tokenizing
from headrace.diagnosis.report import PHASES, Phase, Site, phases_from
from headrace.diagnosis.script_processes import Family, Process, fold_of, steps_of, timeline_of
from headrace.diagnosis.script_sites import (
    Row,
    batch_share,
    hooked_sites,
    merged,
    sampled_sites,
    samples_of,
    site_at,
    site_of,
)

LONG = 3.0  # times the median, and a step stalled
STALLING = ("evaluation", "checkpoint", "logging", "data_wait")
MOST_STALLS = 50
READS_IN_A_ROW = 100  # in a step, by one line
MOST_NAMES = 200
Sited = list[tuple[str, Site]]  # with their phase
LAUNCHED = (
    "the times of the GPU: forward and backward are the launching of its work, and waiting for it shows where the host "
    "reads a value"
)


def evidence_of(family: Family, gpu: float | None = None) -> Evidence:
    main = family.main
    assert main is not None
    fold = fold_of(main)
    phases = phases_of(main, fold)
    total = sum(phase.ms for phase in phases)
    workers = worker_rows(family)
    opened = files_opened(main, fold, workers)
    return Evidence(
        step_ms=total,
        steps=fold["steps"],
        phases=phases,
        tokens_per_second=_tokens(main, fold, 1 + len(family.ranks)),
        cores=main["cores"],
        cpu=cpu_share(family, fold),
        gpu=gpu,
        threads=main["threads"],
        framework=main["framework"],
        busy=busy_elsewhere(family),
        tokenizing=[*tokenizing(fold["sites"], fold["steps"]), *tokenizing(workers, steps_of(main), True)],
        copies=copies(fold),
        loading=loading(main, next((phase.ms for phase in phases if phase.name == "data_wait"), 0.0)),
        optimizers=optimizers(main),
        stalls=stalls(main, fold, phases),
        pad_share=_pad_share(main),
        pad_site=site_at(main["pad_place"]) or _worker_pad_site(family) or _first_site(phases, "forward"),
        files_per_step=opened[0],
        bytes_per_file=opened[1],
        file_site=opened[2],
        without_gradient=main["without_gradient"][:MOST_NAMES],
        losses=main["losses"],
        loss_site=site_at(main["loss_place"]),
        missing=[*family.missing, *([LAUNCHED] if main["cuda"] else [])],
    )


def phases_of(main: Process, fold: dict[str, Any]) -> list[Phase]:
    """Batches that plain Python makes, as the sampler saw it, are moved to the wait for data."""
    steps = fold["steps"]
    ms = {name: max(0.0, fold["phases"].get(name, 0.0) * 1e3 / steps) for name in PHASES}
    lines = samples_of(main)
    sampled = sampled_sites(lines, ms)
    batches = ms["python"] * batch_share(lines)
    ms["python"] -= batches
    ms["data_wait"] += batches
    hooked = hooked_sites(merged(fold["sites"]), steps)
    move_reading(hooked, sampled, ms)
    known = {(phase, site.file, site.line) for phase, site in hooked if site.what != "open"}
    return phases_from(ms, [*hooked, *(entry for entry in sampled if _key(*entry) not in known)])


def move_reading(hooked: Sited, sampled: Sited, ms: dict[str, float]) -> None:
    """A line that reads a hundred values goes with them: the Python around each read is a part of it."""
    python = {(site.file, site.line): site for phase, site in sampled if phase == "python"}
    for phase, site in hooked:
        if phase == "host_sync" and site.calls >= READS_IN_A_ROW and (site.file, site.line) in python:
            around = python.pop((site.file, site.line))
            moved = min(around.ms, ms["python"])
            ms["python"] -= moved
            ms["host_sync"] += moved
            site.ms += moved
            sampled.remove(("python", around))


def _key(phase: str, site: Site) -> tuple[str, str, int]:
    return phase, site.file, site.line


def worker_rows(family: Family) -> list[Row]:
    folds = ("first", "early", "late")
    rows = [row for one in family.workers for name in folds for row in one["steps"][name]["sites"]]
    return merged([*rows, *(row for one in family.workers for row in one["tail"])])


def tokenizing(rows: list[Row], steps: int, in_worker: bool = False) -> list[Tokenizing]:
    return [
        Tokenizing(
            library=row.what.partition(":")[0],
            site=site_of(row, steps),
            texts_per_call=row.amount / row.calls,
            ms_per_text=row.seconds * 1e3 / max(row.amount, 1.0),
            in_worker=in_worker,
        )
        for row in merged(rows)
        if row.phase == "tokenization"
    ]


def copies(fold: dict[str, Any]) -> list[Copies]:
    return [
        Copies(
            site=site_of(row, fold["steps"]),
            blocking="not blocking" not in row.what,
            pinned="not pinned" not in row.what,
            bytes=row.amount / fold["steps"],
        )
        for row in merged(fold["sites"])
        if row.phase == "host_to_device"
    ]


def loading(main: Process, waited: float) -> list[Loading]:
    """The wait counts for the first that was built, which is nearly always the one for training."""
    return [
        Loading(
            site=site,
            workers=loader["workers"],
            batch_size=loader["batch_size"],
            pin_memory=loader["pin_memory"],
            cores=main["cores"],
        )
        for index, loader in enumerate(main["loaders"])
        if (site := site_at(loader["place"], what="DataLoader", ms=0.0 if index else waited)) is not None
    ]


def optimizers(main: Process) -> list[Optimizing]:
    return [
        Optimizing(
            name=entry["name"],
            site=site_at(entry["place"], what=entry["name"]),
            parameters=entry["parameters"],
            one_by_one=entry["one_by_one"],
        )
        for entry in main["optimizers"]
    ]


def stalls(main: Process, fold: dict[str, Any], phases: list[Phase]) -> list[Stall]:
    """Long steps, and the phase that made them long."""
    first, rows = timeline_of(main, fold["steps"])
    if len(rows) < 3:
        return []
    usual = statistics.median(sum(row.values()) for row in rows)
    found = []
    for number, row in enumerate(rows, first):
        phase = max(STALLING, key=lambda name: row.get(name, 0.0))
        if sum(row.values()) > LONG * usual and row.get(phase, 0.0) > usual:
            found.append(Stall(step=number, ms=row[phase], phase=phase, site=_first_site(phases, phase)))
    return sorted(found, key=lambda stall: -stall.ms)[:MOST_STALLS]


def files_opened(
    main: Process, fold: dict[str, Any], workers: list[Row]
) -> tuple[float | None, float | None, Site | None]:
    """Files per step, bytes per file, and the line that opens most of them with all the time that it takes."""
    here = [row for row in merged(fold["sites"]) if row.what == "open"]
    there = [row for row in workers if row.what == "open"]
    count = sum(row.calls for row in here) / fold["steps"] + sum(row.calls for row in there) / steps_of(main)
    if not count:
        return 0.0, None, None
    size = sum(row.amount for row in (*here, *there)) / sum(row.calls for row in (*here, *there))
    rows, steps = (here, fold["steps"]) if here else (there, steps_of(main))
    site = site_of(max(rows, key=lambda row: row.calls), steps)
    inside = [line for _, line in sampled_sites(samples_of(main), _per_step(fold))]
    same = [one.ms for one in inside if (one.file, one.line) == (site.file, site.line)]
    site.ms = max([site.ms, *same])
    return count, size, site


def _per_step(fold: dict[str, Any]) -> dict[str, float]:
    return {name: seconds * 1e3 / fold["steps"] for name, seconds in fold["phases"].items()}


def cpu_share(family: Family, fold: dict[str, Any]) -> float | None:
    assert family.main is not None
    if not fold["seconds"]:
        return None
    workers = sum(load["own"] for one in family.workers if (load := load_of(one)))
    return min(1.0, float(fold["cpu"] / fold["seconds"] + workers) / int(family.main["cores"]))


def busy_elsewhere(family: Family) -> float | None:
    """Cores that other people's processes keep busy."""
    load = load_of(family.main)
    if load is None or not load["cores"]:
        return None
    ours = sum(one["own"] for process in (*family.workers, *family.ranks) if (one := load_of(process)))
    return max(0.0, float(sum(load["cores"]) - load["own"] - ours))


def load_of(process: Process | None) -> dict[str, Any] | None:
    return ((process or {}).get("samples") or {}).get("load")


def _tokens(main: Process, fold: dict[str, Any], ranks: int) -> float | None:
    """Of text: who packs documents instead of padding them is faster by this, although a step takes as long."""
    if not fold["tokens"] or not fold["seconds"]:
        return None
    return float(fold["tokens"] * (1.0 - (_pad_share(main) or 0.0)) / fold["seconds"] * ranks)


def _pad_share(main: Process) -> float | None:
    return main["pads"] / main["ids"] if main["ids"] else None


def _worker_pad_site(family: Family) -> Site | None:
    return next((site for one in family.workers if (site := site_at(one["pad_place"]))), None)


def _first_site(phases: list[Phase], name: str) -> Site | None:
    return next((phase.sites[0] for phase in phases if phase.name == name and phase.sites), None)
