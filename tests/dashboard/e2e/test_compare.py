"""Runs side by side: chosen in the list, drawn over each other, with what differs."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from conftest_browser import Opener, Server, by_id, series, wait_ready, wait_until

BOTH = "/compare?runs=alpha,group%2Fbeta"


def drawn(page: Page, chart: str) -> set[str]:
    return {one["name"] for one in series(page, chart)}


def test_two_runs_are_chosen_and_compared(world: Server, show: Opener) -> None:
    page = show(world.address)
    page.get_by_label("Select alpha to compare").check()
    expect(by_id(page, "compare")).to_have_text(re.compile("Select one more"))
    page.get_by_label("Select group/beta to compare").check()
    expect(by_id(page, "tray")).to_contain_text("2 selected")
    by_id(page, "compare").click()
    wait_ready(page)
    expect(page).to_have_url(re.compile(r"/compare\?runs=alpha,group%2Fbeta$"))
    assert drawn(page, "loss") == drawn(page, "val") == {"alpha", "group/beta"}
    page.go_back()
    expect(page.get_by_label("Select alpha to compare")).to_be_checked()


def test_numbers_and_the_best_of_them(world: Server, show: Opener) -> None:
    page = show(world.address, BOTH)
    row = by_id(page, "compare-numbers").locator("tr", has=page.get_by_role("rowheader", name="Loss", exact=True))
    expect(row.locator("td")).to_have_text(["3.000", "3.017"])
    expect(row.locator("td[data-best]")).to_have_text("3.000")
    steps = by_id(page, "compare-numbers").locator("tr", has=page.get_by_role("rowheader", name="Steps"))
    expect(steps.locator("td")).to_have_text(["1,000", "600"])


def test_settings_that_differ_are_marked(world: Server, show: Opener) -> None:
    page = show(world.address, BOTH)
    table = by_id(page, "compare-config")
    rate = table.locator("tr", has=page.get_by_role("rowheader", name="train.lr"))
    expect(rate.locator("td")).to_have_text(["0.0003", "0.001"])
    expect(rate).to_have_attribute("data-differs", "")
    assert table.locator("tbody tr:not([data-differs])").count() == 0
    by_id(page, "only-differences").click()
    same = table.locator("tr", has=page.get_by_role("rowheader", name="recipe.seed"))
    expect(same.locator("td")).to_have_text(["0", "0"])
    expect(same).not_to_have_attribute("data-differs", "")
    background = "row => getComputedStyle(row.querySelector('td')).backgroundColor"
    assert rate.evaluate(background) != same.evaluate(background)


def test_an_address_keeps_axis_smoothing_and_all_settings(world: Server, show: Opener) -> None:
    page = show(world.address, BOTH)
    by_id(page, "axis-tokens").click()
    by_id(page, "log-axis").click()
    by_id(page, "smoothing").fill("0")
    by_id(page, "only-differences").click()
    expect(page).to_have_url(re.compile("x=tokens.*log=1.*smooth=0.*all=1"))
    again = show(world.address, page.url.removeprefix(world.address))
    expect(by_id(again, "axis-tokens")).to_have_attribute("aria-pressed", "true")
    expect(by_id(again, "log-axis")).to_have_attribute("aria-pressed", "true")
    expect(by_id(again, "only-differences")).to_have_attribute("aria-pressed", "false")
    alpha = next(one for one in series(again, "loss") if one["name"] == "alpha")
    assert alpha["x"][-1] == 1000 * 4096  # tokens


def test_a_run_can_be_hidden_and_left_out(world: Server, show: Opener) -> None:
    page = show(world.address, f"{BOTH},gamma")
    wait_until(page, "() => document.querySelectorAll('[data-testid=compared] li').length === 3")
    page.get_by_role("button", name="Show gamma").click()
    gone = "() => !document.querySelector('[data-testid=chart-loss] .plot').data.some((one) => one.name === 'gamma')"
    wait_until(page, gone)
    page.get_by_role("button", name="Leave alpha out").click()
    wait_ready(page)
    expect(page).to_have_url(re.compile(r"runs=group%2Fbeta,gamma$"))
    expect(by_id(page, "compared").locator("li")).to_have_count(2)
