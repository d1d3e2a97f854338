"""The command runs as it would without us: output, exit code, sitecustomize; and what is missing is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headrace.diagnosis.script import run_script
from headrace.errors import UsageError


def test_exit_code_is_the_scripts() -> None:
    code, report = run_script([sys.executable, "-c", "raise SystemExit(7)"])
    assert code == 7
    assert report.verdict == "Nothing was measured."
    assert "torch" in report.missing[0]


def test_killed_by_a_signal_is_128_and_more() -> None:
    code, _ = run_script([sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
    assert code == 128 + 9


def test_command_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="cannot be started"):
        run_script(["there-is-no-such-command"])


def test_sitecustomize_of_the_environment_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.chained = True\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code = (
        "import sys; assert sys.chained; assert '_headrace_probe' in sys.modules; assert 'headrace' not in sys.modules"
    )
    assert run_script([sys.executable, "-c", code])[0] == 0


def test_injected_folder_leaves_the_path() -> None:
    code = "import sys; assert not [entry for entry in sys.path if entry.endswith('inject')], sys.path"
    assert run_script([sys.executable, "-c", code])[0] == 0


def test_probe_that_fails_is_said_and_the_script_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # An install that raises: threads cannot be started, as under some sandboxes.
    (tmp_path / "threading.py").write_text("raise ImportError('no threads here')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code, report = run_script([sys.executable, "-c", "print('ran')"], stdout=subprocess.DEVNULL)
    assert code == 0
    assert "the probe: ImportError: no threads here" in report.missing


def test_open_and_print_are_as_before(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import io\n"
        "class Holder:\n"
        "    opened = open\n"
        "    printed = print\n"
        f"with Holder().opened({str(tmp_path / 'a.txt')!r}, 'w') as file:\n"
        "    Holder().printed('text', file=file)\n"
        f"assert io.open({str(tmp_path / 'a.txt')!r}).read() == 'text\\n'\n"
        "assert print.__name__ == 'print'\n"
    )
    assert run_script([sys.executable, str(script)])[0] == 0
