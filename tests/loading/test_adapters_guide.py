"""The snippets of docs/loading.md that need optional libraries run; the others are run with all guides."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "loading.md"
SNIPPETS = re.findall(r"^```py\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.M | re.S)

pytestmark = [
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning"),  # importing torchdata
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # Lightning
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
]


@pytest.mark.parametrize("library", ["torchdata", "transformers", "lightning"])
def test_the_snippet_for_a_library_runs(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(library)
    (code,) = [snippet for snippet in SNIPPETS if re.search(rf"^(from|import) {library}\b", snippet, re.M)]
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(code, "documentation", "exec"), names)
    done = names["trainer"].global_step if library == "lightning" else None
    done = names["trainer"].state.global_step if library == "transformers" else done
    assert done == (None if library == "torchdata" else 2)  # the snippet for torchdata has an assertion of its own


def test_there_are_no_others() -> None:
    assert len(SNIPPETS) == 3
