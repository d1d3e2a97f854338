"""Pages that are files: they need no server and no network. And the list of modules in the shell."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import expect

from conftest_browser import PHONE, Opener
from conftest_dashboard import a_run, write_run
from headrace import diagnose
from headrace.cli.main import cli
from headrace.dashboard.assets import WEB
from headrace.demo.commands import NEXT, shown
from headrace.demo.findings import Curve, Findings, Sample, Way
from headrace.demo.page import page
from headrace.diagnosis.compare import compare_reports
from headrace.diagnosis.report import Site


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A report, a comparison and a diagnosis, as their commands write them, and the page of a demo."""
    folder = tmp_path_factory.mktemp("files")
    one, two = write_run(folder / "one", a_run(300)), write_run(folder / "two", a_run(200), lr=1e-3)
    made = {name: folder / f"{name}.html" for name in ("report", "comparison", "diagnosis")}
    for words in (
        ["report", one, "--out", made["report"]],
        ["report", one, two, "--out", made["comparison"]],
        ["diagnose", "training", one, "--html", made["diagnosis"]],
    ):
        done = CliRunner().invoke(cli, list(map(str, words)))
        assert done.exit_code == 0, done.output
    made["demo"] = folder / "demo.html"
    made["demo"].write_text(page(demo_of(one, two)), encoding="utf-8")
    return made


def demo_of(slow: Path, fast: Path) -> Findings:
    """Real diagnoses of two runs, put together as a demo does; `tests/demo` looks at a real one, which takes longer."""
    ways = [
        Way(
            name=name,
            steps=300,
            tokens=300 * 4096,
            seconds=15.0,
            tokens_per_second=81_920.0,
            loss=3.0,
            curve=Curve(tokens=[4096, 8192, 12_288], seconds=[5.0, 10.0, 15.0], loss=[9.0, 5.0, 3.0]),
            report=diagnose(run),
            bits_per_byte=1.5,
            val_loss=3.1,
        )
        for name, run in (("slow way", slow), ("transformer", fast))
    ]
    return Findings(
        folder="demo",
        page="demo/demo.html",
        machine={"cores": 2, "device": "cpu"},
        stages=[{"name": "prepare", "title": "Prepare", "command": "headrace prepare", "seconds": 3.0}],
        seconds=20.0,
        data={"source": "python-stdlib", "tokens": 1000, "val_tokens": 10, "documents": 7, "text_bytes": 3000}
        | {"bytes_per_token": 3.0, "vocabulary": 512, "disk_bytes": 2000},
        slow=ways[0],
        fast=ways[1:],
        factor=2.0,
        costly_lines=[Site(file="slow_way.py", line=12, code="tokens = encode(text)", ms=12.0, calls=64)],
        host_reads_per_step=64.0,
        padding=0.25,
        comparison=compare_reports(ways[0].report, ways[1].report),
        samples=[Sample(model="transformer", prompt="def ", text="<img src=x onerror=alert(1)>", seconds=0.5)],
        compare_command="headrace diagnose compare slow.json fast.json",
        next_commands=[shown(command) for command in NEXT],
    )


@pytest.mark.parametrize("name", ["report", "comparison", "diagnosis", "demo"])
def test_a_file_opens_by_itself(files: dict[str, Path], show: Opener, name: str) -> None:
    address = files[name].as_uri()
    wide = show(address, "", ready=False, offline=True)
    expect(wide.locator("h1").first).to_be_visible()
    expect(wide.locator("svg").first).to_be_visible()
    paper = "getComputedStyle(document.body).backgroundColor"
    light = wide.evaluate(paper)
    wide.emulate_media(color_scheme="dark")
    assert wide.evaluate(paper) != light
    narrow = show(address, "", ready=False, offline=True, viewport={"width": 360, "height": 800}, **PHONE)
    assert narrow.evaluate("document.scrollingElement.scrollWidth") == 360


def test_the_shell_names_every_module_beforehand() -> None:
    """A module that is missing there is asked for one journey later; one that is gone is an error in the console."""
    shell = (WEB / "index.html").read_text(encoding="utf-8")
    named = re.findall(r'<link rel="modulepreload" href="/static/([^"]+)">', shell)
    there = sorted(path.relative_to(WEB).as_posix() for path in WEB.rglob("*.js"))
    assert sorted(named) == [name for name in there if "/" in name]
    assert sorted(re.findall(r'<script [^>]*src="/static/([^"]+)"', shell)) == ["main.js", "theme.js"]
    styles = sorted(path.relative_to(WEB).as_posix() for path in WEB.rglob("*.css"))
    assert sorted(re.findall(r'<link rel="stylesheet" href="/static/([^"]+)"', shell)) == sorted(
        [*styles, "tokens.css"]
    )
