"""Pictures of every page of the dashboard in light, dark and phone width, from a folder of runs and the real server.

python scripts/screenshots.py runs --data data --out pictures
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1440, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1440, "height": 900}},
    "phone": {
        "color_scheme": "light",
        "viewport": {"width": 390, "height": 844},
        "device_scale_factor": 2,
        "is_mobile": True,
        "has_touch": True,
    },
}
COMPARED = 3  # runs
PATIENCE = 60_000  # milliseconds for a page, also on a machine that trains meanwhile


def main() -> int:
    told = options()
    chromium = told.chromium or shutil.which("chromium") or shutil.which("google-chrome")
    if not chromium:
        print("There is no chromium on the PATH. Install it, or name it with --chromium FILE.", file=sys.stderr)
        return 1
    from playwright.sync_api import sync_playwright

    told.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as nothing:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        with server(told.runs, told.data) as address:
            take_all(browser, address, pages(browser, address, told.run), told)
        with server(Path(nothing) / "runs", Path(nothing) / "data") as address:
            take_all(browser, address, {"empty": "/", "empty-data": "/data"}, told)
        browser.close()
    return 0


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="?", default=Path("runs"))
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--out", type=Path, default=Path("screenshots"))
    parser.add_argument("--run", help="the run to show alone; otherwise the first that runs, or the newest")
    parser.add_argument("--only", action="append", default=[], metavar="PAGE", help="such as runs or run-anatomy")
    parser.add_argument("--look", action="append", default=[], choices=LOOKS)
    parser.add_argument("--whole", action="store_true", help="the page to its end, not the first screen of it")
    parser.add_argument("--chromium", metavar="FILE")
    return parser.parse_args()


@contextlib.contextmanager
def server(runs: Path, data: Path) -> Iterator[str]:
    """`headrace dashboard` on a free port; gives its address."""
    command = [sys.executable, "-m", "headrace", "dashboard", str(runs), "--data", str(data), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            words = process.stdout.readline().split()
            if not words:
                raise SystemExit("The server did not start; it says why above.")
            yield words[-1].rstrip("/")
        finally:
            process.terminate()


def pages(browser: Browser, address: str, wanted: str | None) -> dict[str, str]:
    """Name of the picture -> address, of what is there."""
    known = ask(browser, f"{address}/api/runs")
    found = {"runs": "/", "data": "/data", "not-found": "/run/there-is-none"}
    runs = sorted(known["runs"], key=lambda run: run["status"] != "running")
    names = [run["name"] for run in runs if run["step"]]
    if names:
        name = quote(wanted or names[0])
        found["run"] = f"/run/{name}"
        found |= {f"run-{part}": f"/run/{name}#{part}" for part in ("anatomy", "mix", "samples", "config")}
    if len(names) > 1:
        found["compare"] = f"/compare?runs={','.join(map(quote, names[:COMPARED]))}"
    for one in known["datasets"]:
        found.setdefault("dataset" if one["state"] == "ready" else "preparing", f"/data/{quote(one['name'])}")
    if "dataset" in found:
        found["dataset-text"] = f"{found['dataset']}?chunk=3&size=512#browse"
        found["dataset-tokens"] = f"{found['dataset']}#frequency"
    return found


def ask(browser: Browser, address: str) -> Any:
    context = browser.new_context()
    try:
        return context.request.get(address).json()
    finally:
        context.close()


def take_all(browser: Browser, address: str, found: dict[str, str], told: argparse.Namespace) -> None:
    for look in told.look or LOOKS:
        for name, path in found.items():
            if told.only and name not in told.only:
                continue
            context = browser.new_context(**LOOKS[look], reduced_motion="reduce")
            take(context.new_page(), address + path, told.out / f"{name}-{look}.png", told.whole)
            context.close()


def take(page: Page, address: str, to: Path, whole: bool) -> None:
    page.goto(address)
    page.wait_for_selector("main[data-ready]", timeout=PATIENCE)
    page.wait_for_selector("main[data-charts=ready]", timeout=PATIENCE)
    if whole:
        see_all(page)
    page.wait_for_timeout(400)  # for what a section asks when it is scrolled to
    page.screenshot(path=to, full_page=whole)
    print(to)


def see_all(page: Page) -> None:
    """Charts are drawn when they are seen."""
    high = page.evaluate("document.documentElement.scrollHeight")
    for top in range(0, high, 600):
        page.evaluate("top => scrollTo(0, top)", top)
        page.wait_for_timeout(250)
    page.evaluate("scrollTo(0, 0)")


if __name__ == "__main__":
    sys.exit(main())
