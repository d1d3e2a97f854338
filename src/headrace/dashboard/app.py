"""The application: pages, questions, the stream, and errors in words."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from headrace.dashboard import data_routes
from headrace.dashboard.assets import Assets
from headrace.dashboard.compare import MOST, names_in
from headrace.dashboard.context import COMPARED, POINTS, Context
from headrace.dashboard.data_missing import NotFound
from headrace.dashboard.security import Guard
from headrace.dashboard.shell import with_state
from headrace.dashboard.stream import Streams
from headrace.dashboard.views import CompareView, DataView, RunsView, RunView, View
from headrace.errors import HeadraceError, UsageError
from headrace.telemetry import encode_json

MOST_POINTS = 20_000
PACKED = 16 * 1024  # bytes from which an answer is packed: 3 ms for 300 kB, which a tunnel takes longer for


def make_app(runs: Path, data: Path, hosts: Iterable[str] = ()) -> Guard:
    """The dashboard of these two folders, for any ASGI server; `hosts` are names it goes by beside localhost."""
    return Dashboard(Context(Path(runs), Path(data))).guarded(hosts)


class Dashboard:
    """Questions are answered in threads: disks are slow."""

    def __init__(self, context: Context) -> None:
        self.context, self.assets = context, Assets()
        self.streams = Streams(context.instance)

    def guarded(self, hosts: Iterable[str] = ()) -> Guard:
        app = Starlette(
            routes=self._routes(),
            lifespan=self._lifespan,
            exception_handlers={HeadraceError: _in_words, HTTPException: self._not_there, Exception: _our_fault},
        )
        app.state.dashboard = self
        return Guard(app, hosts)

    def _routes(self) -> list[Route]:
        return [
            Route("/", self.page_of(lambda request: self.context.all_runs())),
            Route("/run/{name:anything}", self.page_of(self.run)),
            Route("/compare", self.page_of(self.compare)),
            Route("/data", self.page_of(lambda request: self.context.all_runs())),
            Route("/data/{name:anything}", self.page_of(self.dataset)),
            Route("/api/runs", _json(lambda request: self.context.all_runs())),
            Route("/api/run/{name:anything}", _json(self.run)),
            Route("/api/compare", _json(self.compare)),
            *data_routes.routes(self.context, self.context.pages),
            Route("/events", self.events),
            Route("/static/{name:anything}", self.static),
        ]

    @contextlib.asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        threading.Thread(target=self._warm, name="headrace-warm", daemon=True).start()
        yield
        self.streams.close()

    def _warm(self) -> None:
        """Look at everything once, before anybody asks."""
        self.context.all_runs()
        self.assets.warm()

    def run(self, request: Request) -> dict[str, Any]:
        query = request.query_params
        points = _whole(query.get("points"), "points", POINTS, least=1, most=MOST_POINTS)
        first, last = _step(query.get("from"), "from"), _step(query.get("to"), "to")
        return self.context.run(request.path_params["name"], points or POINTS, first, last)

    def compare(self, request: Request) -> dict[str, Any]:
        points = _whole(request.query_params.get("points"), "points", COMPARED, least=1, most=MOST_POINTS)
        return self.context.compare(_compared(request), points or COMPARED)

    def dataset(self, request: Request) -> dict[str, Any]:
        return self.context.pages.dataset(request.path_params["name"], request.query_params)

    def page_of(self, answer: Callable[[Request], dict[str, Any]]) -> Callable[[Request], Response]:
        """The page with its first answer in it; if that is an error, the page says so."""

        def respond(request: Request) -> Response:
            status, state = 200, None
            try:
                state = answer(request)
            except HeadraceError as error:
                status, state = _status(error), {"error": str(error)}
            return self._page(request, status, state)

        return respond

    def _page(self, request: Request, status: int, state: Any) -> Response:
        body = with_state(self.assets.shell(), state)
        return _packed(request, body, status, "text/html; charset=utf-8")

    def static(self, request: Request) -> Response:
        asset = self.assets.get(request.path_params["name"])
        if asset is None:
            raise NotFound(f"{request.scope['path']}: there is no such file.")
        # Asked for again at every load, which takes a millisecond, and sent again only when it changed.
        headers = {"etag": asset.etag, "cache-control": "no-cache", "vary": "accept-encoding"}
        if asset.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        if asset.packed is not None and _takes_gzip(request):
            return Response(asset.packed, media_type=asset.kind, headers={**headers, "content-encoding": "gzip"})
        return Response(asset.body, media_type=asset.kind, headers=headers)

    async def events(self, request: Request) -> Response:
        if self.streams.full:
            raise UsageError("Too many pages listen to this server already. Close some of them.")
        view = self._view(request)
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self.streams.listen(view), media_type="text/event-stream", headers=headers)

    def _view(self, request: Request) -> View:
        query = request.query_params
        kind, name = query.get("view", "runs"), query.get("name")
        if kind == "runs":
            return RunsView(self.context)
        if kind == "compare":
            return CompareView(self.context, _compared(request))
        if kind == "data":
            return DataView(self.context, name) if name else RunsView(self.context, runs=False)
        if kind == "run" and name:
            cursor = request.headers.get("last-event-id") or query.get("cursor")
            return RunView(self.context, name, cursor)
        raise UsageError(f"view {kind!r}: it must be runs, run with a name, compare with runs, or data.")

    def _not_there(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        path = request.scope["path"]
        words = f"{path}: there is no such page. All runs are at /."
        if path.startswith(("/api/", "/static/", "/events")):
            return _words(words, status)
        return self._page(request, status, {"error": words})


def _compared(request: Request) -> list[str]:
    names = names_in(request.scope["query_string"].decode("latin-1"))
    if not 1 <= len(names) <= MOST:
        raise UsageError(f"{len(names)} runs: name 1 to {MOST} of them, as in ?runs=a,b.")
    return names


def _json(answer: Callable[[Request], dict[str, Any]]) -> Callable[[Request], Response]:
    def respond(request: Request) -> Response:
        return _packed(request, encode_json(answer(request)), 200, "application/json")

    return respond


def _packed(request: Request, body: bytes, status: int, kind: str) -> Response:
    headers = {"cache-control": "no-store", "vary": "accept-encoding"}
    if len(body) >= PACKED and _takes_gzip(request):
        body, headers = gzip.compress(body, 1), {**headers, "content-encoding": "gzip"}
    return Response(body, status, media_type=kind, headers=headers)


def _takes_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "")


def _step(given: str | None, name: str) -> int | None:
    return _whole(given, name, None, least=0, most=10**15)


def _whole(given: str | None, name: str, default: int | None, *, least: int, most: int) -> int | None:
    if given is None or given == "":
        return default
    if not given.isascii() or not given.isdecimal() or len(given) > 18 or not least <= int(given) <= most:
        raise UsageError(f"{name} {given[:40]!r}: it must be a whole number from {least} to {most:,}. Leave it out.")
    return int(given)


def _status(error: HeadraceError) -> int:
    return 404 if isinstance(error, NotFound) else 400


def _in_words(request: Request, error: Exception) -> Response:
    assert isinstance(error, HeadraceError)
    return _words(str(error), _status(error))


def _our_fault(request: Request, error: Exception) -> Response:
    """The traceback goes to the terminal and to nobody else."""
    return _words("The server failed to answer that; its terminal says why. Reload the page to ask again.", 500)


def _words(words: str, status: int) -> Response:
    return Response(encode_json({"error": words}), status, media_type="application/json")
