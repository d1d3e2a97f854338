"""A few documents from all over the input, for the parity gate."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.errors import HeadraceError, Unreachable
from headrace.pipeline.plan import Plan
from headrace.sources import Span, read_spans

PLACES = 8


def take_sample(plan: Plan, size: int) -> list[bytes]:
    """The first documents of tasks spread over the plan, about `size` bytes in all."""
    places = plan.tasks[:: max(1, len(plan.tasks) // PLACES)][:PLACES]
    texts: list[bytes] = []
    for task in places:
        # A file that cannot be read is reported by the run itself, with its place.
        try:
            texts += _head(task.spans, plan, size // len(places))
        except Unreachable:
            break  # each further place would be waited for as long
        except (HeadraceError, OSError):
            continue
    return texts


def _head(spans: Sequence[Span], plan: Plan, size: int) -> list[bytes]:
    """Documents up to `size` in all; one that is larger than that by itself is passed over."""
    taken, total = [], 0
    for batch in read_spans(spans, plan.read, batch_bytes=size):
        for text in batch.texts:
            if len(text) > size:
                continue
            taken.append(text)
            total += len(text)
            if total >= size:
                return taken
        if batch.input_bytes > 64 << 20:
            break
    return taken
