"""The numbers of an event under the names that TensorBoard and Weights & Biases group them by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.training.history import span_shares

TAGS = {
    "step": {
        "loss/train": "loss",
        "optimizer/learning_rate": "lr",
        "optimizer/grad_norm": "grad_norm",
        "optimizer/skipped_steps": "skipped",
        "speed/tokens_per_second": "tokens_per_second",
        "speed/mfu": "mfu",
        "speed/data_wait_share": "data_wait_share",
        "speed/longest_wait": "max_wait",
        "speed/tokens": "tokens",
        "machine/cpu": "cpu",
        "machine/memory": "memory",
        "machine/gpu": "gpu",
        "machine/gpu_memory": "gpu_memory",
    },
    "eval": {"loss/val": "val_loss", "quality/perplexity": "perplexity", "quality/accuracy": "accuracy"},
}


def scalars(event: Mapping[str, Any]) -> dict[str, float]:
    """Values by tag; what the event does not know is left out, and a NaN stays, because both programs show it."""
    tags = TAGS.get(event["kind"], {})
    found = {tag: event.get(name) for tag, name in tags.items()}
    found |= {f"model/{name}": value for name, value in (event.get("metrics") or {}).items()}
    found |= {f"anatomy/{name}": share for name, share in span_shares(event).items()}
    return {tag: float(value) for tag, value in found.items() if isinstance(value, (int, float))}
