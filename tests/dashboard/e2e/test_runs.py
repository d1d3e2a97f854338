"""The list of runs: filter, order, selection, and what stays in the address."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from conftest_browser import Opener, Server, by_id, wait_ready
from conftest_world import HOSTILE_NAME

ALL = {"alpha", "group/beta", "gamma", "long", HOSTILE_NAME}


def listed(page: Page) -> list[str]:
    found: list[str] = by_id(page, "run").evaluate_all("rows => rows.map((row) => row.dataset.run)")
    return found


def test_every_run_with_its_numbers(world: Server, show: Opener) -> None:
    page = show(world.address)
    assert set(listed(page)) == ALL
    expect(by_id(page, "count")).to_have_text("5 runs")
    alpha = page.locator("tr[data-run=alpha]")
    expect(alpha).to_have_attribute("data-status", "finished")
    expect(alpha).to_contain_text("1,000 / 1,000")
    expect(alpha.locator("[data-label=Loss]")).to_have_text("3.000")
    expect(alpha.locator("[data-label=MFU]")).to_have_text("41%")
    expect(alpha.locator(".spark-line")).to_have_attribute("d", re.compile("^M.+L"))
    beta = page.locator("tr[data-run='group/beta']")
    expect(beta).to_have_attribute("data-status", "stopped")
    expect(beta.locator("[data-label=MFU]")).to_have_text(">100%")
    expect(page.locator("tr[data-run=gamma]")).to_have_attribute("data-status", "failed")


def test_filter_by_words_and_fields(world: Server, show: Opener) -> None:
    page = show(world.address)
    field = by_id(page, "filter")
    field.fill("beta")
    expect(by_id(page, "count")).to_have_text("1 of 5")
    assert listed(page) == ["group/beta"]
    field.fill("status:failed")
    expect(page.locator("tr[data-run=gamma]")).to_be_visible()
    assert listed(page) == ["gamma"]
    expect(by_id(page, "chip-failed")).to_have_attribute("aria-pressed", "true")
    field.fill("-status:failed model:ten")
    expect(page.locator("tr[data-run=gamma]")).to_have_count(0)
    field.fill("no such run")
    expect(page.get_by_text("No run matches the filter.")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    expect(by_id(page, "run")).to_have_count(5)
    by_id(page, "chip-stopped").click()
    expect(field).to_have_value("status:stopped")
    expect(page).to_have_url(re.compile("q=status%3Astopped"))


def test_order_by_a_column_and_back(world: Server, show: Opener) -> None:
    page = show(world.address)
    head = by_id(page, "sort-name")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert listed(page) == sorted(ALL, key=str.lower)
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    assert listed(page) == sorted(ALL, key=str.lower, reverse=True)
    by_id(page, "sort-val_loss").get_by_role("button").click()
    expect(by_id(page, "sort-val_loss")).to_have_attribute("aria-sort", "ascending")
    assert listed(page)[0] == "alpha"
    assert listed(page)[-1] == "long"  # has none, and nothing is last either way
    by_id(page, "sort-val_loss").get_by_role("button").click()
    expect(by_id(page, "sort-val_loss")).to_have_attribute("aria-sort", "descending")
    assert listed(page)[-1] == "long"


def test_an_address_shows_the_same_list_again(world: Server, show: Opener) -> None:
    page = show(world.address)
    by_id(page, "filter").fill("lph")
    by_id(page, "sort-loss").get_by_role("button").click()
    expect(page).to_have_url(re.compile("q=lph.*sort=loss"))
    again = show(world.address, page.url.removeprefix(world.address))
    expect(by_id(again, "filter")).to_have_value("lph")
    expect(by_id(again, "sort-loss")).to_have_attribute("aria-sort", "ascending")
    assert listed(again) == ["alpha"]


def test_the_filter_is_there_again_after_a_visit_to_a_run(world: Server, show: Opener) -> None:
    page = show(world.address)
    by_id(page, "filter").fill("status:finished")
    expect(by_id(page, "run")).to_have_count(1)
    page.locator("tr[data-run=alpha] a.title").click()
    expect(by_id(page, "title")).to_have_text("alpha")
    page.go_back()
    expect(by_id(page, "filter")).to_have_value("status:finished")
    assert listed(page) == ["alpha"]
    page.go_forward()
    wait_ready(page)
    expect(by_id(page, "title")).to_have_text("alpha")
