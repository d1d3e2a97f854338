"""Text that would like to be script: in names, samples, messages, metrics, settings and documents."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from conftest_browser import Opener, Server, by_id, wait_until
from conftest_world import HOSTILE, HOSTILE_NAME, LINK

NAME = quote(HOSTILE_NAME)
PAGES = {
    "runs": "/",
    "run": f"/run/{NAME}",
    "compare": f"/compare?runs=alpha,{NAME}",
    "data": "/data",
    "dataset": f"/data/{NAME}?chunk=0&size=128",
}
INJECTED = """() => [
  ...document.querySelectorAll("main img, main script, main iframe, main b > b, [onerror], [onclick], [onload]"),
  ...[...document.querySelectorAll("a[href]")].filter((link) => link.protocol === "javascript:"),
  ...[...document.scripts].filter((one) => !one.src && one.type !== "application/json"),
].map((element) => element.outerHTML)"""


def seen(page: Page) -> None:
    """Scrolled through, so that every section and chart is drawn; charts have texts that Plotly could read as tags."""
    for name in page.locator("section[id]").evaluate_all("all => all.filter((one) => !one.hidden).map(({ id }) => id)"):
        page.locator(f"section[id='{name}']").scroll_into_view_if_needed()


@pytest.mark.parametrize("name", PAGES)
def test_text_stays_text(world: Server, show: Opener, name: str) -> None:
    page = show(world.address, PAGES[name])
    seen(page)
    wait_until(page, "() => document.querySelector('main').dataset.charts === 'ready'")
    assert page.evaluate(INJECTED) == []
    expect(page.locator("main")).to_contain_text(HOSTILE_NAME)


def test_a_run_shows_it_letter_by_letter(world: Server, show: Opener) -> None:
    page = show(world.address, f"/run/{NAME}")
    expect(by_id(page, "title")).to_have_text(HOSTILE_NAME)
    expect(by_id(page, "sample").locator(".prompt p")).to_have_text(HOSTILE)
    expect(by_id(page, "sample").locator(".predicted p")).to_have_text(HOSTILE)
    expect(by_id(page, "sample").locator(".expected p")).to_have_text(LINK)
    expect(by_id(page, "messages")).to_contain_text(HOSTILE)
    expect(by_id(page, "mix")).to_contain_text(HOSTILE)
    expect(by_id(page, "section-metrics")).to_contain_text(HOSTILE)
    expect(by_id(page, "config")).to_contain_text(HOSTILE)
    assert page.title() == f"stopped · {HOSTILE_NAME} · Headrace"
    by_id(page, "section-anatomy").scroll_into_view_if_needed()
    box = by_id(page, "chart-anatomy").locator(".plot").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(by_id(page, "chart-anatomy").locator(".hoverlayer")).to_contain_text("onerror")
    assert page.evaluate(INJECTED) == []


def test_documents_are_shown_as_they_are(world: Server, show: Opener) -> None:
    page = show(world.address, f"/data/{NAME}?chunk=0&size=256")
    chunk = by_id(page, "chunk")
    expect(chunk).to_contain_text(HOSTILE)
    expect(chunk).to_contain_text("<b>bold</b>")
    chunk.locator("[data-at='3']").hover()
    expect(page.locator(".tip")).to_be_visible()
    assert page.evaluate(INJECTED) == []


def test_a_filter_and_an_address_are_text_too(world: Server, show: Opener) -> None:
    page = show(world.address, f"/?q={quote(HOSTILE)}")
    expect(by_id(page, "filter")).to_have_value(HOSTILE)
    show.allow("404")
    page.goto(f"{world.address}/run/{quote(HOSTILE, safe='')}")
    expect(by_id(page, "not-found")).to_contain_text("onerror")
    assert page.evaluate(INJECTED) == []
