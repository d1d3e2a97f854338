"""Context: the two folders that a dashboard shows, and what is known of them."""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any

from headrace.dashboard.answers import run_answer
from headrace.dashboard.compare import differences
from headrace.dashboard.data_folder import DataFolder
from headrace.dashboard.data_missing import NotFound
from headrace.dashboard.data_routes import DataPages
from headrace.dashboard.diagnosing import Diagnoses
from headrace.dashboard.folder import Folder
from headrace.dashboard.library import Library
from headrace.dashboard.runs import Runs

POINTS, COMPARED = 1500, 800
FRESH = 0.9  # seconds


class Context:
    """Everything in here may be called from any thread, and none of it from the event loop."""

    def __init__(self, runs: Path, data: Path) -> None:
        self.runs, self.data = runs, data
        self.instance = secrets.token_hex(8)  # another server has another one
        self.folder, self._among_runs = Folder(runs), DataFolder(runs)
        self.summaries = Runs(self.folder, data)
        self.library, self.diagnoses = Library(), Diagnoses()
        self.pages = DataPages(self)
        self._datasets: tuple[float, list[dict[str, Any]]] = (float("-inf"), [])

    def path(self, name: str) -> Path:
        found = self.folder.get(name)
        if found is None:
            raise NotFound(
                f"run {name!r}: there is none of that name in {self.runs}. `headrace train DATA --out "
                f"{self.runs}/NAME` makes one; the list of runs is at /."
            )
        return found

    def extra_datasets(self) -> dict[str, Path]:
        """Datasets in the folder of the runs, where some keep all they have."""
        return self._among_runs.datasets()

    def datasets(self) -> list[dict[str, Any]]:
        """Looked at once a second, however many ask."""
        at, found = self._datasets
        if time.monotonic() - at > FRESH:
            found = self.pages.summaries()
            self._datasets = (time.monotonic(), found)
        return found

    def all_runs(self) -> dict[str, Any]:
        return {
            "instance": self.instance,
            "folder": str(self.runs),
            "data_folder": str(self.data),
            "runs": self.summaries.all(),
            "datasets": self.datasets(),
        }

    def run(self, name: str, points: int = POINTS, first: int | None = None, last: int | None = None) -> dict[str, Any]:
        run = self.library.get(self.path(name), whole=True)
        summary = self.summaries.get(name)
        answer = run_answer(run, points, first, last)
        return {"summary": summary, **answer, "diagnosis": self.diagnoses.get(run), "instance": self.instance}

    def compare(self, names: list[str], points: int = COMPARED) -> dict[str, Any]:
        """Curves for one picture; full resolution is made only for runs that are looked at alone."""
        rows = [self._compared(name, points) for name in names]
        return {
            "runs": rows,
            "differences": differences([row["config"] for row in rows]),
            "instance": self.instance,
        }

    def _compared(self, name: str, points: int) -> dict[str, Any]:
        run = self.library.get(self.path(name))
        answer = run_answer(run, points)
        kept = {key: answer[key] for key in ("cursor", "columns", "evals", "config")}
        return {"summary": self.summaries.get(name), **kept}
