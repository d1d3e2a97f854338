"""scripts/setup.sh on machines that lack something: each time a paragraph, an exit code, and a way on."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import pip
import pytest

ROOT = Path(__file__).parents[1]
INPUTS = ["pyproject.toml", "constraints-dev.txt", "requirements-test-data.txt", "scripts/setup.sh"]
TOOLS = ["cat", "chmod", "cksum", "cut", "date", "dirname", "grep", "mkdir", "rm", "sed", "sh", "sleep", "tail"]

# Stands in for a Python: answers what setup.sh asks, makes "environments" that hold a copy of itself, and plays pip.
# Files in $FAKE steer it; $FAKE/calls lists what it was asked to do.
FAKE_PYTHON = r"""#!/bin/sh
echo "$*" >>"$FAKE/calls"
case "$*" in
    -V) echo "Python $(cat "$FAKE/version")" ;;
    "-c import venv, ensurepip") [ ! -e "$FAKE/no-ensurepip" ] ;;
    *"version_info < (3, 10)"*) case $(cat "$FAKE/version") in 3.[0-9].*) exit 1 ;; esac ;;
    *"sys.version_info[:2]"*) echo python3.11 ;;
    "-m venv "*)
        mkdir -p "$3/bin" && cat "$0" >"$3/bin/python" && chmod +x "$3/bin/python"
        echo "VIRTUAL_ENV=$3" >"$3/bin/activate" && : >"$3/pyvenv.cfg" ;;
    "-m pip --version") ;;
    "-m pip install "*)
        if [ -e "$FAKE/pip-fails" ]; then cat "$FAKE/pip-fails"; exit 1; fi
        echo "Installing collected packages: something"
        if [ -e "$FAKE/pip-hangs" ]; then : >"$FAKE/hanging"; exec sleep 60; fi
        echo "Successfully installed something" ;;
    *) exit 64 ;;
esac
"""


class Machine:
    """A copy of the set-up's files, and a PATH that holds the plain tools and the Pythons a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a clone"  # with a space, as home folders have
        self.venv = self.root / ".venv"
        self.fake = folder / "fake"
        self.bin = folder / "bin"
        for name in INPUTS:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.fake.mkdir()
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
        self.env = {"PATH": str(self.bin), "HOME": str(folder), "FAKE": str(self.fake)}

    def has_python(self, version: str = "3.11.7", name: str = "python3") -> None:
        (self.fake / "version").write_text(version)
        (self.bin / name).write_text(FAKE_PYTHON)
        (self.bin / name).chmod(0o755)

    def calls(self) -> str:
        log = self.fake / "calls"
        text = log.read_text() if log.exists() else ""
        log.unlink(missing_ok=True)
        return text

    def setup(self, **env: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", "scripts/setup.sh"]
        return subprocess.run(command, cwd=self.root, env=self.env | env, capture_output=True, text=True, timeout=60)

    def setup_fails(self, **env: str) -> str:
        result = self.setup(**env)
        assert result.returncode == 1
        assert "Traceback" not in result.stderr
        assert not (self.venv / "setup.stamp").exists()
        return result.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_second_time_does_nothing(machine: Machine) -> None:
    machine.has_python()
    first = machine.setup()
    assert first.returncode == 0, first.stderr
    assert "Python 3.11.7" in first.stdout
    assert "done in" in first.stdout
    calls = machine.calls()
    assert "-c constraints-dev.txt -e .[dev,train,dashboard,ray]" in calls
    assert "--no-deps -r requirements-test-data.txt" in calls

    second = machine.setup()
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert machine.calls().split() == ["-V"]


@pytest.mark.parametrize("name", INPUTS)
def test_a_changed_input_installs_again(machine: Machine, name: str) -> None:
    machine.has_python()
    machine.setup()
    machine.calls()
    with (machine.root / name).open("a") as file:
        file.write("# changed\n")
    assert machine.setup().returncode == 0
    calls = machine.calls()
    assert "pip install" in calls
    assert "-m venv" not in calls


def test_another_python_makes_a_new_environment(machine: Machine) -> None:
    machine.has_python()
    machine.setup()
    machine.calls()
    machine.has_python("3.12.1", name="python3.12")
    (machine.venv / "bin/python").write_text("#!/bin/sh\necho Python 3.11.7\n")
    assert machine.setup(PYTHON="python3.12").returncode == 0
    assert "-m venv" in machine.calls()


def test_a_moved_clone_makes_a_new_environment(machine: Machine) -> None:
    machine.has_python()
    machine.setup()
    machine.calls()
    machine.root = machine.root.rename(machine.root.with_name("moved"))
    assert machine.setup().returncode == 0
    assert "-m venv" in machine.calls()


def test_no_python(machine: Machine) -> None:
    message = machine.setup_fails()
    assert "no Python 3.10 or newer was found" in message
    assert "apt install python3 python3-venv" in message


def test_only_an_old_python(machine: Machine) -> None:
    machine.has_python("3.8.18")
    message = machine.setup_fails()
    assert "python3 is Python 3.8.18" in message
    assert "PYTHON=/path/to/python3" in message


def test_a_newer_python_under_its_own_name(machine: Machine) -> None:
    (machine.bin / "python3").write_text("#!/bin/sh\nexit 1\n")
    (machine.bin / "python3").chmod(0o755)
    machine.has_python("3.12.1", name="python3.12")
    result = machine.setup()
    assert result.returncode == 0
    assert "with Python 3.12.1" in result.stdout


def test_a_python_named_that_is_not_there(machine: Machine) -> None:
    machine.has_python()
    assert "looked for: /nowhere/python" in machine.setup_fails(PYTHON="/nowhere/python")


def test_no_ensurepip_names_the_package(machine: Machine) -> None:
    machine.has_python()
    (machine.fake / "no-ensurepip").touch()
    assert "apt install python3.11-venv" in machine.setup_fails()
    (machine.fake / "no-ensurepip").unlink()
    assert machine.setup().returncode == 0


def test_a_folder_that_cannot_be_written(machine: Machine) -> None:
    machine.has_python()
    (machine.root / "file").touch()  # below a regular file: refused for root too, who may write to read-only folders
    message = machine.setup_fails(HEADRACE_VENV="file/venv")
    assert f"cannot write the virtual environment to {machine.root}/file/venv" in message
    assert "export HEADRACE_VENV=" in message


def test_no_space_left(machine: Machine) -> None:
    machine.has_python()
    error = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
    (machine.fake / "pip-fails").write_text(error)
    message = machine.setup_fails()
    assert "the disk is full" in message
    assert "TMPDIR" in message


def test_pip_fails_for_another_reason(machine: Machine) -> None:
    machine.has_python()
    (machine.fake / "pip-fails").write_text("ERROR: the build of something failed\n")
    message = machine.setup_fails()
    assert "stopped at 'installing headrace" in message
    assert "ERROR: the build of something failed" in message
    assert str(machine.venv / "setup.log") in message


def test_no_network_with_the_real_pip(tmp_path: Path) -> None:
    folder = tmp_path / "venv"
    venv.create(folder, with_pip=False)  # and this environment's own pip: ensurepip would take 4 s
    (site_packages,) = folder.glob("lib/python*/site-packages")
    (site_packages / "pip").symlink_to(Path(pip.__file__).parent)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHON": sys.executable}
    env |= {"HEADRACE_VENV": str(folder), "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"}
    env |= {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    command = ["sh", str(ROOT / "scripts/setup.sh")]
    result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert result.returncode == 1
    assert "the package index could not be reached" in result.stderr
    assert "ERROR: No matching distribution found" in result.stderr
    assert "HTTPS_PROXY or PIP_INDEX_URL" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_install_is_made_again(machine: Machine, how: signal.Signals) -> None:
    machine.has_python()
    (machine.fake / "pip-hangs").touch()
    command = ["sh", "scripts/setup.sh"]
    process = subprocess.Popen(command, cwd=machine.root, env=machine.env, start_new_session=True)
    deadline = time.monotonic() + 30
    while not (machine.fake / "hanging").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    ends = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < ends:
        os.killpg(process.pid, how)  # again, as a person does: the first may come between two commands
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
    ended = process.poll()
    if ended is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert ended not in (None, 0)

    (machine.fake / "pip-hangs").unlink()
    machine.calls()
    result = machine.setup()
    assert result.returncode == 0
    assert "making it again" in result.stdout
    assert "-m venv" in machine.calls()


def test_an_environment_of_the_user_is_left_alone(machine: Machine) -> None:
    machine.has_python()
    theirs = machine.root / "theirs"
    (theirs / "bin").mkdir(parents=True)
    (theirs / "bin/python").write_text("#!/bin/sh\nexit 1\n")
    (theirs / "pyvenv.cfg").touch()
    assert "this script did not make" in machine.setup_fails(HEADRACE_VENV="theirs")
    assert sorted(path.name for path in theirs.rglob("*")) == ["bin", "python", "pyvenv.cfg"]
