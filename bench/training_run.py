"""Who runs in bench/training.py, and how one of them is run in a process of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from contender_process import answer

TIMEOUT = 3600
OURS = "headrace"


class Contender(NamedTuple):
    name: str
    module: str
    environment: str | None = None  # below the rivals' folder; None is the one that runs this
    fused: bool = True


CONTENDERS = [
    Contender(OURS, "headrace"),
    Contender("nanogpt", "nanogpt", "training", fused=False),  # as published: the fused AdamW on CUDA only
    Contender("nanogpt_fused", "nanogpt", "training"),
    Contender("litgpt", "litgpt", "training", fused=False),  # likewise
    Contender("litgpt_fused", "litgpt", "training"),
    Contender("hf_trainer", "hf_trainer", "training"),
]


def run(one: Contender, verb: str, rivals: Path | None, spec: dict[str, Any]) -> dict[str, Any]:
    """The last line that the contender's process prints; whatever it started is ended with it."""
    words = ["training_rivals.run", verb, one.module, json.dumps({**spec, "fused": one.fused})]
    return answer(one.environment, rivals, words, env=environment(spec["threads"]), timeout=TIMEOUT)


def environment(threads: int) -> dict[str, str]:
    """As many threads for everyone, and nothing is fetched or reported home."""
    offline = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}
    return os.environ | offline | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
