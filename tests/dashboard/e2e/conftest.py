"""One browser for the tests of this folder, one server for those that change nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from conftest_browser import CONTEXT, FLAGS, PATIENCE, Opener, Server, find_chromium, no_browser
from conftest_world import write_world


# A package's scope, because Playwright leaves its event loop marked as running between two calls: tests elsewhere that
# begin one of their own would be refused while the browser is open.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    chromium = find_chromium()
    if chromium is None:
        no_browser()
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        sandbox = not hasattr(os, "geteuid") or os.geteuid() != 0  # root has none
        opened = playwright.chromium.launch(executable_path=chromium, args=FLAGS, chromium_sandbox=sandbox)
        yield opened
        opened.close()


@pytest.fixture(scope="package")
def shared(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(**CONTEXT)
    yield context
    context.close()


@pytest.fixture
def show(browser: Browser, shared: BrowserContext) -> Iterator[Opener]:
    """Opens pages; the test fails if one of them complained, broke its policy or asked another server."""
    opener = Opener(browser, shared)
    yield opener
    opener.close()


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory, shared: BrowserContext) -> Iterator[Server]:
    """Runs and data that nobody changes, and a server that shows them."""
    folder = tmp_path_factory.mktemp("world")
    write_world(folder)
    server = Server(folder)
    shared.new_page().goto(f"{server.address}/api/runs")  # stays open, and with it the process of all pages
    yield server
    server.stop()
