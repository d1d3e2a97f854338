"""The machine's own Chromium on a real server, and an eye on what its pages must never do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PATIENCE = 15_000  # milliseconds; what is waited for comes within one on a quiet machine
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]
VIOLATIONS = """
addEventListener("securitypolicyviolation",
  (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
"""
PHONE: dict[str, Any] = {"is_mobile": True, "has_touch": True, "device_scale_factor": 2}


def find_chromium() -> str | None:
    return os.environ.get("HEADRACE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def no_browser(why: str) -> None:
    """A reason to skip; to fail where a browser is required, as in continuous integration."""
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
    """What pages of a context did that they should not: complaints, forbidden loads, dialogs, foreign addresses."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.problems: list[str] = []
        self._allowed: list[str] = []
        self._address = address
        context.add_init_script(VIOLATIONS)
        context.on("console", lambda message: self._say(f"console {message.type}: {message.text}"))
        context.on("weberror", lambda error: self._say(f"error: {error.error}"))
        context.on("dialog", self._dialog)
        context.on("request", lambda request: self._asked(request.url))

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
    """Opens pages, each in a context of its own, and looks at the end at what they did."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[tuple[BrowserContext, Quiet]] = []

    def __call__(self, address: str, path: str = "/", *, ready: bool = True, **options: Any) -> Page:
        made = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", "color_scheme": "light"}
        context = self._browser.new_context(**{**made, **options})
        context.set_default_timeout(PATIENCE)
        self._contexts.append((context, Quiet(context, address)))
        page = context.new_page()
        page.goto(address + path)
        if ready:
            wait_ready(page)
        return page

    def allow(self, words: str) -> None:
        for _, quiet in self._contexts:
            quiet.allow(words)

    def close(self) -> None:
        for context, _ in self._contexts:
            context.close()
        for _, quiet in self._contexts:
            quiet.check()


def wait_ready(page: Page) -> None:
    """The view stands, and its charts on the screen are Plotly's."""
    page.wait_for_selector("main[data-ready][data-charts=ready]")


def by_id(page: Page, name: str) -> Any:
    return page.get_by_test_id(name)


def series(page: Page, chart: str) -> list[dict[str, Any]]:
    """What Plotly draws in a chart: name, x and y of each trace."""
    script = """chart => [...(document.querySelector(`[data-testid="chart-${chart}"] .plot`)?.data || [])]
        .map(({ name, x, y }) => ({ name, x: [...x], y: [...y] }))"""
    found: list[dict[str, Any]] = page.evaluate(script, chart)
    return found


def wait_until(page: Page, script: str, value: Any = None) -> None:
    page.wait_for_function(script, arg=value)


Open = Callable[..., "Page"]
