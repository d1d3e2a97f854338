"""Pages that follow what is being written: a run, a dataset in the making, and a server that goes away."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from conftest_browser import Opener, Server, by_id, series, wait_ready, wait_until
from conftest_dashboard import append, eval_event, recent, run_event, sample_event, step_event, write_recipe
from conftest_pipeline import make_texts, write_jsonl

LAST = """step => {
  const traces = document.querySelector("[data-testid=chart-loss] .plot")?.data || [];
  return traces.find((one) => one.name === "train")?.x.at(-1) === step;
}"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    yield made
    made.stop()


def begin(folder: Path, last: int) -> None:
    write_recipe(folder)
    append(folder, *recent([run_event(steps=200), *(step_event(step) for step in range(10, last + 1, 10))]))


def stays(page: Page) -> None:
    page.evaluate("window.stayed = true")


def has_stayed(page: Page) -> None:
    assert page.evaluate("window.stayed") is True, "the page was loaded again"


def test_a_run_is_followed_from_the_empty_list_to_its_end(server: Server, show: Opener) -> None:
    page = show(server.address)
    stays(page)
    expect(by_id(page, "empty")).to_be_visible()
    run = server.runs / "new"
    begin(run, 50)
    row = page.locator("tr[data-run=new]")
    expect(row).to_have_attribute("data-status", "running")
    expect(row).to_contain_text("50 / 200")
    row.get_by_role("link", name="new").click()
    wait_until(page, LAST, 50)
    expect(by_id(page, "number-loss")).to_have_text("7.246")
    expect(page).to_have_title("25% 7.246 · new · Headrace")

    append(run, *recent([step_event(100, loss=2.5), eval_event(100, val_loss=2.75), sample_event(100, " the hat")]))
    wait_until(page, LAST, 100)
    expect(by_id(page, "number-loss")).to_have_text("2.500")
    expect(by_id(page, "number-val_loss")).to_have_text("2.750")
    expect(page.get_by_role("progressbar", name="Progress")).to_have_attribute("aria-valuenow", "50")
    expect(by_id(page, "sample").locator(".predicted p")).to_have_text(" the hat")
    assert [one["y"] for one in series(page, "loss") if one["name"] == "validation"] == [[2.75]]

    append(run, *recent([step_event(200, loss=2.0), {"kind": "end", "step": 200, "loss": 2.0}]))
    expect(by_id(page, "status").first).to_have_text("finished")
    wait_until(page, LAST, 200)
    has_stayed(page)


def test_a_page_outlives_its_server(server: Server, show: Opener) -> None:
    run = server.runs / "brave"
    begin(run, 50)
    page = show(server.address, "/run/brave")
    stays(page)
    expect(by_id(page, "connection")).to_have_attribute("data-state", "live")
    show.allow("ERR_")  # the browser says that nobody answers, and it is right
    server.stop(kill=True)
    expect(by_id(page, "connection")).to_have_text("reconnecting")
    expect(by_id(page, "banner")).to_contain_text("headrace dashboard")
    expect(by_id(page, "number-loss")).to_have_text("7.246")
    assert page.evaluate(LAST, 50)
    append(run, *recent([step_event(60, loss=6.5)]))
    server.start()
    expect(by_id(page, "connection")).to_have_attribute("data-state", "live")
    expect(by_id(page, "banner")).to_be_hidden()
    wait_until(page, LAST, 60)
    append(run, *recent([step_event(70, loss=6.25)]))
    wait_until(page, LAST, 70)
    expect(by_id(page, "number-loss")).to_have_text("6.250")
    train = next(one for one in series(page, "loss") if one["name"] == "train")
    assert train["x"] == list(range(10, 71, 10))  # nothing twice, nothing lost
    has_stayed(page)


class Preparing:
    """A real `headrace prepare` that can be held still, so that a page can be looked at in the middle."""

    def __init__(self, source: Path, out: Path) -> None:
        options = ["--task-bytes", "200000", "--workers", "2", "--engine", "reference"]
        command = [sys.executable, "-m", "headrace", "prepare", str(source), "--out", str(out), *options]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def hold(self) -> None:
        os.killpg(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.killpg(self._process.pid, signal.SIGCONT)

    def end(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def test_a_dataset_in_the_making_shard_by_shard(server: Server, show: Opener, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "large.jsonl", make_texts(90_000))
    page = show(server.address, "/data")
    stays(page)
    expect(by_id(page, "empty")).to_contain_text("headrace prepare")
    preparing = Preparing(source, server.data / "web")
    try:
        card = page.locator("[data-dataset=web]")
        expect(card).to_have_attribute("data-status", "running")
        preparing.hold()
        card.click()
        wait_ready(page)
        preparing.go_on()
        expect(by_id(page, "prepare-share")).not_to_have_text("0%")
        preparing.hold()
        cells = page.locator("[data-testid=shard-grid] [data-shard]")
        assert cells.count() > 10
        expect(page.locator("[data-shard][data-state=waiting]")).not_to_have_count(0)
        expect(page.locator("[data-shard][data-state=done]")).not_to_have_count(0)
        expect(cells.first).to_have_attribute("title", re.compile("shard-00000: .* tokens"))
        expect(by_id(page, "prepare-tokens")).not_to_have_text("0")
        preparing.go_on()
        expect(by_id(page, "chunk")).to_contain_text("Document ", timeout=60_000)
    finally:
        preparing.end()
    told = json.loads((server.data / "web" / "metadata.json").read_text())
    expect(by_id(page, "dataset-head")).to_contain_text("ready")
    expect(by_id(page, "splits")).to_contain_text(f"{told['total_tokens']:,}")
    has_stayed(page)
