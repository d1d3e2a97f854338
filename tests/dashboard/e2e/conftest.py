"""One browser for the tests of this folder, one server for those that change nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from conftest_browser import FLAGS, PATIENCE, Opener, Server, find_chromium, no_browser
from conftest_dashboard import a_run, append, rows, run_event, sample_event, step_event, write_run
from conftest_pipeline import write_jsonl
from headrace import prepare

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "\"'><img src=x onerror=alert(1)></script><script>alert(2)</script>"
HOSTILE_NAME = "<img src=x onerror=alert(1)>&lt;b"  # a folder: no slash
LINK = "javascript:alert(3)"
TALES = [f"Tale {i} begins. " + "The mill turns, the water runs. " * (i % 9) + f"So ends {i}." for i in range(60)]


# A package's scope, because Playwright leaves its event loop marked as running between two calls: tests elsewhere that
# begin one of their own would be refused while the browser is open.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    chromium = find_chromium()
    if chromium is None:
        no_browser("There is no chromium, chromium-browser or google-chrome on the PATH; HEADRACE_CHROMIUM may name one.")
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        no_browser("Playwright is not installed. Run: make setup")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        sandbox = not hasattr(os, "geteuid") or os.geteuid() != 0  # root has none
        opened = playwright.chromium.launch(executable_path=chromium, args=FLAGS, chromium_sandbox=sandbox)
        yield opened
        opened.close()


@pytest.fixture
def show(browser: Browser) -> Iterator[Opener]:
    """Opens pages; the test fails if one of them complained, broke its policy or asked another server."""
    opener = Opener(browser)
    yield opener
    opener.close()


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Server]:
    """Runs and data that nobody changes, and a server that shows them."""
    folder = tmp_path_factory.mktemp("world")
    write_runs(folder / "runs")
    write_data(folder)
    server = Server(folder)
    yield server
    server.stop()


def write_runs(runs: Path) -> None:
    write_run(runs / "alpha", map(_fed, a_run(1000)), lr=3e-4)
    write_run(runs / "group" / "beta", a_run(600), lr=1e-3, model={"name": "transformer", "size": "small"})
    write_run(runs / "gamma", a_run(300), lr=3e-4)
    append(runs / "gamma", {"t": 400.0, "kind": "error", "text": "The disk is full."})
    write_run(runs / "long", [run_event(steps=6000), *rows(1, 6000)])
    write_run(runs / HOSTILE_NAME, map(_hostile, a_run(200)), lr=3e-4, note=HOSTILE, link=LINK)
    append(runs / HOSTILE_NAME, {"t": 300.0, "kind": "message", "text": HOSTILE})


def _fed(event: Mapping[str, Any]) -> dict[str, Any]:
    """Two sources, three samples of the one to one of the other, and a metric of the model."""
    if event["kind"] != "step":
        return dict(event)
    step = event["step"]
    told = {"data/web": (3 * step, 0.7), "data/code": (step, 0.3)}
    sources = {name: {"samples": n, "tokens": 16 * n, "epochs": n / 1000, "target": t} for name, (n, t) in told.items()}
    return {**event, "sources": sources, "metrics": {"firing_rate": 0.125}}


def _hostile(event: Mapping[str, Any]) -> dict[str, Any]:
    if event["kind"] == "run":
        return {**event, "model": {"name": HOSTILE, "size": HOSTILE}, "datasets": [HOSTILE], "device": HOSTILE}
    if event["kind"] == "sample":
        return {**sample_event(event["step"], HOSTILE), "prompt": HOSTILE, "expected": LINK}
    if event["kind"] != "step":
        return dict(event)
    source = {"samples": 5, "tokens": 80, "epochs": 0.1, "target": 0.5}
    spans = {**event["spans"], HOSTILE: 0.1}
    return {**event, "sources": {HOSTILE: source, LINK: source}, "metrics": {HOSTILE: 0.5}, "spans": spans}


def write_data(folder: Path) -> None:
    tales = write_jsonl(folder / "tales.jsonl", TALES)
    prepare(tales, out=folder / "data" / "tales", chunk_size=64, val_fraction=0.2, task_bytes=4000)
    hostile = write_jsonl(folder / "hostile.jsonl", [HOSTILE, LINK, "<b>bold</b>", "日本語 👨‍👩‍👧‍👦 \u202e\x07"] * 5)
    prepare(hostile, out=folder / "data" / HOSTILE_NAME, tokenizer="bytes", chunk_size=64)


@pytest.fixture(scope="package")
def names() -> dict[str, str]:
    return {"run": HOSTILE_NAME, "text": HOSTILE, "link": LINK}


@pytest.fixture(scope="package")
def steps() -> Any:
    return step_event
