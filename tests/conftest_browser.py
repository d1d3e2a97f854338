"""The machine's own Chromium on a real server, and an eye on what its pages must never do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page

PATIENCE = 15_000  # milliseconds; what is waited for comes within one on a quiet machine
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync", "--process-per-site"]
VIOLATIONS = """
addEventListener("securitypolicyviolation",
  (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
"""
CONTEXT: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce"}
CONTEXT |= {"color_scheme": "light"}
PHONE: dict[str, Any] = {"is_mobile": True, "has_touch": True, "device_scale_factor": 2}


def find_chromium() -> str | None:
    return os.environ.get("HEADRACE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def no_browser() -> NoReturn:
    """A reason to skip; to fail where a browser is required, as in continuous integration."""
    why = f"There is no browser: none of {', '.join(NAMES)} is on the PATH, and HEADRACE_CHROMIUM names none."
    if os.environ.get("HEADRACE_BROWSER") == "required":
        pytest.fail(f"{why} HEADRACE_BROWSER=required asks for one.")
    pytest.skip(why)


class Server:
    """`headrace dashboard` in a process of its own; after a stop it starts again on the same port."""

    def __init__(self, folder: Path) -> None:
        self.runs, self.data = folder / "runs", folder / "data"
        self.address, self._port = "", "0"
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "headrace", "dashboard", str(self.runs), "--data", str(self.data)]
        self._process = subprocess.Popen([*command, "--port", self._port], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().split()[-1].rstrip("/")
        self._port = self.address.rpartition(":")[2]

    def stop(self, *, kill: bool = False) -> None:
        if self._process is None:
            return
        self._process.kill() if kill else self._process.terminate()
        self._process.communicate(timeout=60)
        self._process = None


class Quiet:
    """What a page did that it should not: complaints, forbidden loads, dialogs, foreign addresses."""

    def __init__(self, page: Page, address: str) -> None:
        self.problems: list[str] = []
        self._allowed: list[str] = []
        self._address = address
        page.add_init_script(VIOLATIONS)
        page.on("console", lambda message: self._say(f"console {message.type}: {message.text}"))
        page.on("pageerror", lambda error: self._say(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("request", lambda request: self._asked(request.url))

    def allow(self, words: str) -> None:
        """Messages with these words are what the test provokes."""
        self._allowed.append(words)

    def check(self) -> None:
        found = [problem for problem in self.problems if not any(words in problem for words in self._allowed)]
        assert found == []

    def _say(self, words: str) -> None:
        self.problems.append(words)

    def _dialog(self, dialog: Any) -> None:
        self._say(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _asked(self, url: str) -> None:
        if not url.startswith((self._address, "data:image/", "blob:")):
            self._say(f"asked for {url}")


class Opener:
    """Opens pages, and looks at the end at what they did.

    A page with options of its own has a context of its own. The others share one, and a process, which keeps the
    compiled script of Plotly: a page of a run takes 0.9 s of CPU instead of 2.4. Nothing else is kept but the theme.
    """

    def __init__(self, browser: Browser, shared: BrowserContext) -> None:
        self._browser, self._shared = browser, shared
        self._contexts: list[BrowserContext] = []
        self._pages: list[tuple[Page, Quiet]] = []

    def __call__(self, address: str, path: str = "/", *, ready: bool = True, **options: Any) -> Page:
        page = (self._own(options) if options else self._shared).new_page()
        page.set_default_timeout(PATIENCE)
        self._pages.append((page, Quiet(page, address)))
        page.goto(address + path)
        if ready:
            wait_ready(page)
        return page

    def allow(self, words: str) -> None:
        for _, quiet in self._pages:
            quiet.allow(words)

    def close(self) -> None:
        for page, _ in self._pages:
            page.close()
        for context in self._contexts:
            context.close()
        for _, quiet in self._pages:
            quiet.check()

    def _own(self, options: dict[str, Any]) -> BrowserContext:
        self._contexts.append(self._browser.new_context(**{**CONTEXT, **options}))
        return self._contexts[-1]


def wait_ready(page: Page) -> None:
    """The view stands, and its charts on the screen are Plotly's."""
    page.wait_for_selector("main[data-ready][data-charts=ready]")


def by_id(page: Page, name: str) -> Locator:
    return page.get_by_test_id(name)


def series(page: Page, chart: str) -> list[dict[str, Any]]:
    """What Plotly draws in a chart: name, x and y of each trace."""
    script = """chart => [...(document.querySelector(`[data-testid="chart-${chart}"] .plot`)?.data || [])]
        .map(({ name, x, y }) => ({ name, x: [...x], y: [...y] }))"""
    found: list[dict[str, Any]] = page.evaluate(script, chart)
    return found


def wait_until(page: Page, script: str, value: Any = None) -> None:
    """`script` is a function: an expression would be read again at every look, which the page's policy forbids."""
    assert "=>" in script
    page.wait_for_function(script, arg=value)
