"""One real demo, as short as it can be, that all tests of it look at."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import msgspec
import pytest

from headrace.demo.findings import Findings
from headrace.demo.folder import DemoFolder


class Told(NamedTuple):
    folder: DemoFolder
    stdout: str
    stderr: str
    findings: Findings


@pytest.fixture(scope="session")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """`headrace demo --json` in a process of its own, on one thread, where nobody is at a screen."""
    out = tmp_path_factory.mktemp("place") / "demo"
    done = subprocess.run(
        [sys.executable, "-m", "headrace", "demo", "--out", str(out), "--seconds", "0.5", "--json"],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "80"},
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return Told(DemoFolder(out), done.stdout, done.stderr, msgspec.json.decode(done.stdout, type=Findings))
