"""The numbers of some steps, once they have arrived, as an event tells them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from headrace.training.late import Interval, column_means


class Summary(NamedTuple):
    loss: float  # mean of those that are numbers
    rate: float  # tokens per second, of all ranks
    fields: dict[str, Any]
    bad: tuple[int, float, float] | None  # the first step that was left out, its loss and its norm


def summarise(interval: Interval, tokens_per_step: int) -> Summary:
    """Loss, rates and shares of an interval."""
    facts, values = interval.facts, interval.values
    losses, norms = values[:, 0].tolist(), values[:, 1].tolist()
    pairs = list(zip(losses, norms, strict=True))
    bad = [(i, *pair) for i, pair in enumerate(pairs) if not all(map(math.isfinite, pair))]
    finite = [loss for loss in losses if math.isfinite(loss)]
    loss = sum(finite) / len(finite) if finite else math.nan
    training = facts["seconds"] - facts["spans"]["evaluation"] - facts["spans"]["checkpoint"]
    rate = facts["steps"] * tokens_per_step / max(1e-9, training)
    fields = {
        **{key: value for key, value in facts.items() if key != "loader_step"},
        "loss": loss,
        "losses": losses,
        "grad_norm": norms[-1],
        "tokens_per_second": rate,
        "data_wait_share": facts["spans"]["data_wait"] / max(1e-9, training),
        "skipped": len(bad),
        **({"metrics": column_means(interval)} if interval.names else {}),
    }
    first = facts["step"] - facts["steps"] + 1
    return Summary(loss, rate, fields, (first + bad[0][0], *bad[0][1:]) if bad else None)
