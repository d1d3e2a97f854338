"""The files of the page, from this package, and Plotly's script, from its own. Held in memory, packed once."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import threading
from pathlib import Path
from typing import NamedTuple

from headrace.errors import MissingDependency
from headrace.pages.style import TOKENS

WEB = Path(__file__).parent / "web"
PLOTLY, STYLE = "plotly.min.js", "tokens.css"
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
MODULE = b'<script type="module"'
LEAST = 1024  # bytes that are worth packing


class Asset(NamedTuple):
    body: bytes
    packed: bytes | None  # by gzip, if that is less
    etag: str
    kind: str


class Assets:
    """Only files that are listed here have a name; no path is made out of what is asked for."""

    def __init__(self, web: Path = WEB) -> None:
        self._web, self._lock = web, threading.Lock()
        self._kept: dict[str, tuple[object, Asset]] = {}
        self._plotly = find_plotly()
        self._files = {path.relative_to(web).as_posix(): path for path in web.rglob("*") if path.suffix in KINDS}

    def get(self, name: str) -> Asset | None:
        if name == STYLE:
            return self._made(name, "fixed", TOKENS.encode())
        path = self._plotly if name == PLOTLY else self._files.get(name)
        if path is None:
            return None
        stamp = path.stat().st_mtime_ns
        kept = self._kept.get(name)
        return kept[1] if kept and kept[0] == stamp else self._made(name, stamp, path.read_bytes())

    def shell(self) -> bytes:
        """The page itself, with all its modules named in it: a browser asks for them at once, not as it finds them."""
        page = (self._web / "index.html").read_bytes()
        modules = (name for name in self._files if name.endswith(".js") and f"/static/{name}".encode() not in page)
        links = "".join(f'<link rel="modulepreload" href="/static/{name}">\n' for name in sorted(modules))
        return page.replace(MODULE, links.encode() + MODULE, 1)

    def warm(self) -> None:
        """Pack Plotly's 4.6 MB, 0.2 s, before anybody asks for them."""
        self.get(PLOTLY)

    def _made(self, name: str, stamp: object, body: bytes) -> Asset:
        with self._lock:
            kept = self._kept.get(name)
            if kept and kept[0] == stamp:
                return kept[1]
            packed = gzip.compress(body, 6, mtime=0) if len(body) >= LEAST else None
            if packed is not None and len(packed) >= len(body):
                packed = None
            etag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
            made = Asset(body, packed, etag, KINDS[Path(name).suffix])
            self._kept[name] = (stamp, made)
            return made


def find_plotly() -> Path:
    """The script that the package plotly carries; nothing of the package is imported, which would take a second."""
    spec = importlib.util.find_spec("plotly")
    path = Path(spec.origin).parent / "package_data" / PLOTLY if spec is not None and spec.origin else None
    if path is None or not path.is_file():
        raise MissingDependency("plotly", "dashboard", "The dashboard")
    return path
