"""Who runs in bench/training.py, and how one of them is run in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from loading_run import end_group

HERE = Path(__file__).parent
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
    python = sys.executable if one.environment is None else str((rivals or Path()) / one.environment / "bin" / "python")
    order = json.dumps({**spec, "fused": one.fused})
    process = subprocess.Popen(
        [python, "-W", "ignore", "-m", "training_rivals.run", verb, one.module, order],
        cwd=HERE,
        env=environment(spec["threads"]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        text, errors = process.communicate(timeout=TIMEOUT)
    finally:
        end_group(process.pid)
    if process.returncode:
        sys.exit(f"{one.name}, {verb}, failed:\n{errors[-3000:]}")
    return dict(json.loads(text.strip().splitlines()[-1]))


def environment(threads: int) -> dict[str, str]:
    """As many threads for everyone, and nothing is fetched or reported home."""
    offline = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "false"}
    return os.environ | offline | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
