"""The table of bench/models_quality.py, from what is there."""

from __future__ import annotations

import statistics
from typing import Any

BASE = "transformer"
HEADER = (
    "| data | model | parameters | tokens | validation loss | seeds | against the transformer | accuracy | tokens/s |"
)


def quality_table(result: dict[str, Any]) -> str:
    settings = result["settings"]
    title = (
        f"{settings['size']}, {settings['steps']:,} steps of {settings['batch_size']} x {settings['seq_len']} tokens, "
        f"{settings['precision']}, {result['date']}, {result['cores']} cores; "
        f"{len(result['runs'])} of {result['wanted']} runs done"
    )
    lines = [
        title,
        "",
        f"    {result['command']}",
        "",
        HEADER,
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for dataset, pairs in result["bigram"].items():
        found = {name: runs_of(result, dataset, name) for name in result["variants"]}
        lines += [row(dataset, name, runs, found.get(BASE, {})) for name, runs in found.items() if runs]
        for counted in pairs.values():
            loss, tokens = counted["loss"], counted["tokens"]
            lines.append(
                f"| {dataset} | table of pairs | | {tokens:,} | {loss:.4f} | | {versus(loss, found.get(BASE))} | | |"
            )
    rates = ", ".join(f"{name} {told['optimizer']} {told['lr']:g}" for name, told in result["variants"].items())
    lines += ["", f"Mean and half the range over the seeds. Optimizers and learning rates: {rates}."]
    lines += [f"FAILED: {title}: {why}" for title, why in result["failed"].items()]
    return "\n".join(lines)


def runs_of(result: dict[str, Any], dataset: str, model: str) -> dict[int, dict[str, Any]]:
    return {run["seed"]: run for run in result["runs"] if (run["dataset"], run["model"]) == (dataset, model)}


def row(dataset: str, name: str, runs: dict[int, dict[str, Any]], base: dict[int, dict[str, Any]]) -> str:
    losses = [run["val_loss"] for run in runs.values()]
    first = next(iter(runs.values()))
    both = [seed for seed in runs if seed in base]
    gaps = [runs[seed]["val_loss"] - base[seed]["val_loss"] for seed in both]
    gap = f"{spread(gaps, sign='+')}" if gaps and name != BASE else ""
    accuracy = statistics.mean(run["accuracy"] for run in runs.values())
    speed = statistics.median(run["tokens_per_second"] for run in runs.values())
    return (
        f"| {dataset} | {name} | {first['parameters']:,} | {first['tokens']:,} | {spread(losses)} | {len(runs)} | "
        f"{gap} | {accuracy:.2%} | {speed:,.0f} |"
    )


def versus(bigram: float, base: dict[int, dict[str, Any]] | None) -> str:
    return f"{bigram - statistics.mean(run['val_loss'] for run in base.values()):+.4f}" if base else ""


def spread(values: list[float], sign: str = "") -> str:
    half = (max(values) - min(values)) / 2
    return f"{statistics.mean(values):{sign}.4f}" + (f" ± {half:.4f}" if len(values) > 1 else "")
