"""The page of one run: every section with its numbers, and a zoom that asks for more."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from conftest_browser import Opener, Server, by_id, series, wait_until

SECTIONS = ("curves", "anatomy", "hardware", "mix", "metrics", "samples", "config", "log")


def test_the_head_and_all_sections(world: Server, show: Opener) -> None:
    page = show(world.address, "/run/alpha")
    expect(by_id(page, "title")).to_have_text("alpha")
    expect(by_id(page, "status").first).to_have_text("finished")
    expect(by_id(page, "number-loss")).to_have_text("3.000")
    expect(by_id(page, "number-val_loss")).to_have_text("3.100")
    expect(by_id(page, "number-tokens_per_second")).to_have_text("81.9k")
    expect(by_id(page, "number-mfu")).to_have_text("41%")
    expect(by_id(page, "number-tokens")).to_have_text("4.10M")
    for name in SECTIONS:
        expect(by_id(page, f"section-{name}")).to_be_visible()
        expect(by_id(page, f"to-{name}")).to_have_attribute("href", f"#{name}")


def test_a_run_that_failed_says_why(world: Server, show: Opener) -> None:
    page = show(world.address, "/run/gamma")
    expect(by_id(page, "problem")).to_have_text("The disk is full.")
    expect(by_id(page, "section-mix")).to_be_hidden()  # of one source


def test_curves_have_what_was_logged(world: Server, show: Opener) -> None:
    page = show(world.address, "/run/alpha")
    found = {one["name"]: one for one in series(page, "loss")}
    assert found["train"]["x"] == list(range(10, 1001, 10))
    assert found["validation"]["x"] == list(range(100, 1001, 100))
    assert abs(found["validation"]["y"][-1] - 3.1) < 1e-2
    expect(by_id(page, "chart-speed").locator(".note")).to_have_text("81.9k")


def test_the_anatomy_of_a_step(world: Server, show: Opener) -> None:
    page = show(world.address, "/run/alpha#anatomy")
    expect(by_id(page, "verdict")).to_contain_text("Compute-bound")
    backward = by_id(page, "phases").locator("tr[data-phase=backward]")
    expect(backward).to_contain_text("25 ms")
    expect(backward).to_contain_text("50%")
    wait_until(page, "() => document.querySelector('[data-testid=chart-anatomy] .plot')?.data")
    shares = {one["name"]: one["y"] for one in series(page, "anatomy")}
    assert abs(shares["backward"][0] - 0.5) < 1e-9
    assert abs(sum(values[0] for values in shares.values()) - 1) < 0.05  # without trifles
    expect(by_id(page, "tree")).to_contain_text("├─")


def test_the_mix_against_its_target(world: Server, show: Opener) -> None:
    page = show(world.address, "/run/alpha#mix")
    web = by_id(page, "mix").locator("tr[data-source='data/web']")
    expect(web.locator("td.n")).to_have_text(["75.0%", "70.0%", "48.0k", "3.00"])
    code = by_id(page, "mix").locator("tr[data-source='data/code']")
    expect(code.locator("td.n")).to_have_text(["25.0%", "30.0%", "16.0k", "1.00"])
    wait_until(page, "() => document.querySelector('[data-testid=chart-mix] .plot')?.data")
    assert {one["name"] for one in series(page, "mix")} >= {"data/web", "data/code", "data/web target"}


def test_samples_from_the_newest_back(world: Server, show: Opener) -> None:
    page = show(world.address, "/run/alpha#samples")
    sample = by_id(page, "sample")
    expect(sample).to_have_attribute("data-step", "1000")
    expect(sample.locator(".prompt p")).to_have_text("the cat\nsat on")
    expect(sample.locator(".expected p")).to_have_text(" the mat")
    expect(sample.locator(".predicted p")).to_have_text(" a mat")
    expect(sample.locator(".predicted mark")).to_have_text("a")
    by_id(page, "sample-previous").click()
    expect(sample).to_have_attribute("data-step", "900")
    expect(page).to_have_url(re.compile("sample=900"))
    again = show(world.address, page.url.removeprefix(world.address))
    expect(by_id(again, "sample")).to_have_attribute("data-step", "900")


def test_config_metrics_messages_and_checkpoints(world: Server, show: Opener) -> None:
    page = show(world.address, "/run/alpha")
    by_id(page, "config-filter").fill("lr")
    row = by_id(page, "config").locator("div", has=page.get_by_text("train.lr", exact=True))
    expect(row.locator("dd")).to_have_text("0.0003")
    by_id(page, "config-filter").fill("nothing has this")
    expect(by_id(page, "config")).to_have_text("Nothing in the config has that.")
    expect(by_id(page, "chart-firing_rate").locator(".note")).to_have_text("0.125")
    expect(by_id(page, "chart-memory").locator(".note")).to_have_text("3.20 GB")
    expect(by_id(page, "checkpoints")).to_have_text("None is there.")  # it wrote events of some, and no file
    expect(by_id(page, "messages")).to_have_text("It said nothing.")


def dragged(page: Page, chart: str, first: float, last: float) -> None:
    """A stretch of the chart, marked with the mouse."""
    box = by_id(page, f"chart-{chart}").locator(".plot").bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + first * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + last * box["width"], y, steps=5)
    page.mouse.up()


def test_a_zoom_asks_for_every_step(world: Server, show: Opener) -> None:
    page = show(world.address, "/run/long")
    whole = next(one for one in series(page, "loss") if one["name"] == "train")
    assert len(whole["x"]) <= 1500
    with page.expect_response(re.compile(r"/api/run/long\?.*from=\d+&to=\d+")) as answer:
        dragged(page, "loss", 0.4, 0.5)
    steps = answer.value.json()["columns"]["steps"]
    assert steps == list(range(steps[0], steps[-1] + 1))  # none left out
    expect(page).to_have_url(re.compile(r"from=\d+&to=\d+"))
    finer = "length => document.querySelector('[data-testid=chart-loss] .plot').data.at(-2).x.length === length"
    wait_until(page, finer, len(steps))
    again = show(world.address, page.url.removeprefix(world.address))
    assert next(one for one in series(again, "loss") if one["name"] == "train")["x"] == steps
    by_id(page, "zoom-reset").click()
    expect(page).to_have_url(re.compile("/run/long$"))
    wait_until(page, finer, len(whole["x"]))


def test_smoothing_and_a_logarithmic_axis_stay_in_the_address(world: Server, show: Opener) -> None:
    page = show(world.address, "/run/alpha")
    by_id(page, "smoothing").fill("0.9")
    by_id(page, "log-axis").click()
    expect(page).to_have_url(re.compile("smooth=0.9&log=1"))
    wait_until(page, "() => document.querySelector('[data-testid=chart-loss] .plot').layout.yaxis.type === 'log'")
    assert "raw" in {one["name"] for one in series(page, "loss")}
    page.reload()
    expect(by_id(page, "log-axis")).to_have_attribute("aria-pressed", "true")
    expect(by_id(page, "smoothing")).to_have_value("0.9")
