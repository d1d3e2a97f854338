"""One contender in a process of its own: its answer is the last line that it prints."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def answer(
    environment: str | None, rivals: Path | None, words: Sequence[str], *, env: dict[str, str], timeout: float
) -> dict[str, Any]:
    """Run `python -m words...` of an environment below the rivals' folder (None: this one), and end what it started."""
    python = sys.executable if environment is None else str((rivals or Path()) / environment / "bin" / "python")
    process = subprocess.Popen(
        [python, "-W", "ignore", "-m", *words],
        cwd=HERE,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        text, errors = process.communicate(timeout=timeout)
    finally:
        _end_group(process.pid)
    if process.returncode:
        sys.exit(f"{' '.join(words[:4])} failed:\n{errors[-3000:]}")
    return dict(json.loads(text.strip().splitlines()[-1]))


def _end_group(leader: int) -> None:
    """Worker processes that outlive their parent would disturb the next contender."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass
