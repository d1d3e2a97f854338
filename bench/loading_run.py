"""Who runs in bench/loading.py, and how one of them is run in a process of its own."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from contender_process import answer

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
    words = ["loading_rivals.run", verb, one.name, str(workers), json.dumps(order)]
    return answer(one.environment, rivals, words, env=environment(), timeout=TIMEOUT)


def environment() -> dict[str, str]:
    """Nothing is fetched and nothing is reported home; cached work of earlier runs is not found."""
    return os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
