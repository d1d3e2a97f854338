"""The folder of a demo: where everything lies, that it is a demo's, and what of it is there."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec

from headrace.demo.plan import MODELS, DemoConfig
from headrace.errors import UsageError
from headrace.files import write_atomically
from headrace.telemetry import encode_json


class DemoFolder:
    def __init__(self, out: Path) -> None:
        self.path = out
        self.about = out / "demo.json"  # what was asked, and how long each stage took
        self.tokenizer = out / "tokenizer.json"
        self.data = out / "data"
        self.script = out / "slow_way.py"
        self.slow = out / "slow"
        self.slow_report = self.slow / "report.json"
        self.slow_steps = self.slow / "steps.json"
        self.samples = out / "samples.json"
        self.findings = out / "findings.json"
        self.page = out / "demo.html"

    def run(self, model: str) -> Path:
        return self.path / "runs" / model

    def diagnosis(self, model: str) -> Path:
        return self.path / "diagnosis" / f"{model}.json"

    def claim(self, config: DemoConfig, machine: dict[str, Any]) -> None:
        """Start over: what an earlier demo found is gone at once, its data and runs when their turn comes."""
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"--out {self.path} is a file. Name a folder, or one that is not there yet.")
        if self.path.is_dir() and any(self.path.iterdir()) and not self.about.exists():
            raise UsageError(f"{self.path} holds other files and is no demo. Choose another folder with --out.")
        made = (self.slow_report, self.slow_steps, self.samples, self.findings, self.page)
        for path in (*made, *(self.diagnosis(model) for model in MODELS)):
            path.unlink(missing_ok=True)
        for folder in (self.slow, self.diagnosis("").parent):
            folder.mkdir(parents=True, exist_ok=True)
        self.write_about({"started": time.time(), "seconds_asked": config.seconds, "machine": machine, "stages": []})

    def write_about(self, about: dict[str, Any]) -> None:
        write_atomically(self.about, encode_json(about) + b"\n")

    def read_about(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.about.read_bytes())
        return found

    def what_is_there(self) -> list[str]:
        """For somebody who stopped half-way."""
        found = []
        if (self.data / "metadata.json").exists():
            found.append(f"the prepared data in {self.data}")
        if self.slow_report.exists():
            found.append(f"the diagnosis of the slow way in {self.slow_report}")
        found += [f"a run in {self.run(model)}" for model in MODELS if (self.run(model) / "checkpoints").is_dir()]
        return found
