"""The figures of bench/diagnosis.py as tables."""

from __future__ import annotations

from typing import Any

KEPT = 0.70  # of what was predicted
FIRST = 3  # scripts that the claim is about: those whose first advice promises most


def table(result: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    lines = [
        f"{result['date']}, {result['machine']}, load {result['load_average'][0]:.1f} at the start; {versions}",
        "",
        f"    {result['command']}",
    ]
    if "overhead" in result:
        lines += ["", *overhead(result)]
    if "gains" in result:
        lines += ["", *gains(result)]
    return "\n".join(lines)


def overhead(result: dict[str, Any]) -> list[str]:
    how = (
        f"Medians over {result['rounds']} rounds of {result['turns']} comparisons, in brackets the lowest and highest "
        f"round; turns of about {result['seconds']:g} s."
    )
    return [
        "## What the probe costs a step",
        "",
        how,
        "",
        "| script | step | CPU time | two without | wall time | two without | start-up |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *(overhead_row(row) for row in result["overhead"]),
    ]


def overhead_row(row: dict[str, Any]) -> str:
    cells = [f"{row['script']}: {row['is']}", f"{row['cpu']['step_ms']:.3g} ms"]
    for clock in ("cpu", "wall"):
        figures = row[clock]
        cells += [spread(figures[key], figures[f"{key}_of_rounds"]) for key in ("overhead", "same")]
    cells.append(f"{row['start_s']:+.2f} s")
    return f"| {' | '.join(cells)} |"


def spread(median: float, rounds: list[float]) -> str:
    return f"{median:+.1%} ({min(rounds):+.1%} to {max(rounds):+.1%})"


def gains(result: dict[str, Any]) -> list[str]:
    rows = result["gains"]
    kept = sum((row["share"] or 0.0) >= KEPT for row in rows)
    first = sum((row["share"] or 0.0) >= KEPT for row in rows[:FIRST])
    how = (
        f"Medians of {result['rounds']} rounds. Step and `reached` are without the probe, `compare` is what "
        "`headrace diagnose compare` says of two runs under it."
    )
    outcome = (
        f"At least {KEPT:.0%} of the predicted gain, without the probe: {first} of the first {min(FIRST, len(rows))}, "
        f"{kept} of {len(rows)} that were run."
    )
    if result["not_run"]:
        outcome += f" Not run: {', '.join(result['not_run'])}."
    return [
        "## Predicted and reached",
        "",
        how,
        "",
        "| script | first advice | step before | after | predicted | reached | of the gain | by CPU time | compare |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
        *(gains_row(row) for row in rows),
        "",
        outcome,
    ]


def gains_row(row: dict[str, Any]) -> str:
    reached = [one["reached"] for one in row["runs"]]
    share = f"{row['share']:.0%}" if row["share"] is not None else ""
    by_compare = f"{row['by_compare']:.2f}x" + (
        f", {row['share_by_compare']:.0%}" if row["share_by_compare"] is not None else ""
    )
    return (
        f"| {row['script']} | {row['advice']} | {row['before_ms']:.3g} ms | {row['after_ms']:.3g} ms | "
        f"{row['predicted']:.2f}x | {row['reached']:.2f}x ({min(reached):.2f} - {max(reached):.2f}) | {share} | "
        f"{row['reached_cpu']:.2f}x | {by_compare} |"
    )
