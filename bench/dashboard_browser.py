"""The pages of the dashboard in Chromium: when something can be seen, and when it is what was asked for."""

from __future__ import annotations

import time
from typing import Any

from playwright.sync_api import sync_playwright

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 120.0  # seconds
# Runs before the page's own scripts: notes when it says that it is drawn, and when the first curve is there.
NOTE = """
window.noted = {};
const look = () => {
  const now = performance.now();
  const main = document.getElementById("main");
  if (main?.dataset.ready) noted.ready ??= now;
  if (document.querySelector("[data-chart=loss] svg path.line, svg.spark path[d]")) noted.curve ??= now;
  if (main?.dataset.charts) noted.plotly ??= now;
};
new MutationObserver(look).observe(document, {subtree: true, childList: true, attributes: true});
"""
PAINT = "(performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null)"


def look(address: str, chromium: str) -> dict[str, float]:
    found: dict[str, float] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        browser.new_page().goto("about:blank")  # its own start is not ours
        for path in ("/", "/run/big"):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.add_init_script(NOTE)
            found |= measure(page, address, path)
            page.close()
        browser.close()
    return found


def measure(page: Any, address: str, path: str) -> dict[str, float]:
    """By the page's own clock, which starts when the address is asked for."""
    page.goto(address + path, wait_until="commit")
    wait_until(page, f"noted.ready && noted.curve && {PAINT}")
    found = {"first contentful paint": page.evaluate(PAINT)}
    found |= {"drawn": page.evaluate("noted.ready"), "first curve": page.evaluate("noted.curve")}
    if path.startswith("/run/"):
        wait_until(page, "noted.plotly")
        found["all charts by Plotly"] = page.evaluate("noted.plotly")
    return {f"{path} in Chromium, {name}, ms": value for name, value in found.items()}


def wait_until(page: Any, noted: str) -> None:
    """Asked from outside: the page's policy forbids what Playwright would put into it to wait there."""
    ends = time.monotonic() + PATIENCE
    while not page.evaluate(noted):
        assert time.monotonic() < ends, noted
        time.sleep(0.02)
