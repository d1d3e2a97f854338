"""Keys, themes, empty folders and narrow screens."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import Page, expect

from conftest_browser import PHONE, Opener, Server, by_id, wait_ready
from conftest_world import HOSTILE_NAME

HOSTILE_PATH = quote(HOSTILE_NAME)
PAGES = ("/", "/run/alpha", "/compare?runs=alpha,group%2Fbeta", "/data", "/data/tales?chunk=1&size=128")


def paper(page: Page) -> str:
    found: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return found


def test_the_list_by_keys(world: Server, show: Opener) -> None:
    page = show(world.address)
    page.keyboard.press("/")
    expect(by_id(page, "filter")).to_be_focused()
    page.keyboard.type("a j k c t ?")  # letters here, and no commands
    expect(by_id(page, "filter")).to_have_value("a j k c t ?")
    by_id(page, "filter").fill("-gamma -long -img")
    expect(by_id(page, "run")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(by_id(page, "filter")).not_to_be_focused()
    here = page.locator("tr[data-here]")
    rows = by_id(page, "run").evaluate_all("all => all.map((row) => row.dataset.run)")
    for key, at in (("j", 0), ("j", 1), ("j", 1), ("k", 0)):
        page.keyboard.press(key)
        expect(here).to_have_attribute("data-run", rows[at])
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(by_id(page, "tray")).to_contain_text("2 selected")
    page.keyboard.press("c")
    expect(by_id(page, "compared").locator("li")).to_have_count(2)
    page.keyboard.press("g")
    expect(by_id(page, "run")).to_have_count(5)
    page.keyboard.press("Escape")
    expect(by_id(page, "tray")).to_be_hidden()
    page.keyboard.press("j")
    first = by_id(page, "run").first.get_attribute("data-run")
    page.keyboard.press("Enter")
    expect(by_id(page, "title")).to_have_text(str(first))
    page.keyboard.press("d")
    expect(by_id(page, "datasets")).to_be_visible()


def test_the_help_opens_and_closes(world: Server, show: Opener) -> None:
    page = show(world.address)
    page.keyboard.press("?")
    expect(by_id(page, "keys")).to_be_visible()
    expect(by_id(page, "keys")).to_contain_text("compare what is selected")
    page.keyboard.press("Escape")
    expect(by_id(page, "keys")).to_be_hidden()


def test_a_theme_is_kept_and_otherwise_the_system_decides(world: Server, show: Opener) -> None:
    page = show(world.address, color_scheme="light")
    light = paper(page)
    page.emulate_media(color_scheme="dark")
    dark = paper(page)
    assert dark != light
    page.keyboard.press("t")  # light, whatever the system says
    assert paper(page) == light
    page.reload()
    wait_ready(page)
    assert paper(page) == light
    by_id(page, "theme").click()
    page.emulate_media(color_scheme="light")
    assert paper(page) == dark
    page.keyboard.press("t")
    assert paper(page) == light
    expect(by_id(page, "theme")).to_have_attribute("aria-label", "Theme: as the system")


def test_charts_take_the_colours_of_the_theme(world: Server, show: Opener) -> None:
    page = show(world.address, "/run/alpha", color_scheme="dark")
    script = "document.querySelector('[data-testid=chart-loss] .plot').layout.font.color"
    dark = page.evaluate(script)
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"dark => {script} !== dark", arg=dark)
    assert page.evaluate(script) != dark


def test_no_page_is_wider_than_a_phone(world: Server, show: Opener) -> None:
    page = show(world.address, viewport={"width": 390, "height": 800}, **PHONE)
    for path in (*PAGES, f"/run/{HOSTILE_PATH}", f"/data/{HOSTILE_PATH}"):
        page.goto(world.address + path)
        wait_ready(page)
        for width in (390, 360):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("[document.scrollingElement.scrollWidth, innerWidth]") == [width, width], path


def test_a_page_that_is_not_there(world: Server, show: Opener) -> None:
    page = show(world.address)
    show.allow("404")
    for path in ("/run/nobody", "/data/nothing", "/no/such/page", "/compare?runs=alpha,nobody"):
        answer = page.goto(world.address + path)
        assert answer is not None
        assert answer.status == 404
        expect(by_id(page, "not-found")).to_contain_text("Not found")
        expect(by_id(page, "not-found").get_by_role("link")).to_have_attribute("href", re.compile("^/(data)?$"))


def test_empty_folders_say_what_to_run(show: Opener, tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        page = show(server.address)
        for command in ("headrace demo", "headrace prepare python-stdlib", "headrace train data/python-stdlib"):
            expect(by_id(page, "empty")).to_contain_text(command)
        by_id(page, "nav-data").click()
        expect(by_id(page, "empty")).to_contain_text("No prepared data yet")
        expect(by_id(page, "empty")).to_contain_text("headrace prepare python-stdlib")
    finally:
        server.stop()
