"""Who runs in bench/loading.py, and how one of them is run in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
TIMEOUT = 900


class Contender(NamedTuple):
    name: str
    environment: str | None = None  # below the rivals' folder; None is the one that runs this
    files: str | None = None  # whose converted files it reads, where they are not its own


CONTENDERS = [
    Contender("copy_limit"),
    Contender("headrace"),
    Contender("torch_dataloader", "."),
    Contender("torchdata", "."),
    Contender("litdata", "."),
    Contender("hf_datasets", ".", "hf_arrow"),
    Contender("hf_iterable", ".", "hf_arrow"),
    Contender("grain", "."),
    Contender("nanogpt", "."),
    Contender("megatron", "."),
    Contender("mosaic", "streaming"),  # needs numpy < 2.2, so it has an environment of its own
]


def run(one: Contender, verb: str, rivals: Path | None, order: dict[str, Any], workers: int = 0) -> dict[str, Any]:
    """The last line that the contender's process prints; whatever it started is ended with it."""
    python = sys.executable if one.environment is None else str((rivals or Path()) / one.environment / "bin" / "python")
    command = [python, "-W", "ignore", "-m", "loading_rivals.run", verb, one.name, str(workers), json.dumps(order)]
    process = subprocess.Popen(
        command,
        cwd=HERE,
        env=environment(),
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
        sys.exit(f"{one.name}, {verb} with {workers} workers, failed:\n{errors[-3000:]}")
    return dict(json.loads(text.strip().splitlines()[-1]))


def environment() -> dict[str, str]:
    """Nothing is fetched and nothing is reported home; cached work of earlier runs is not found."""
    return os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def end_group(leader: int) -> None:
    """Worker processes that outlive their parent would disturb the next contender."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass
