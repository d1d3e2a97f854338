"""/api/data/...: what the pages of the datasets ask for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import headrace.dashboard.any_name  # noqa: F401 - a kind of name in routes
from headrace.dashboard.data_chunk import LEAST, MOST, chunk_of_document, show_chunk
from headrace.dashboard.data_dataset import DatasetPage
from headrace.dashboard.data_folder import DataFolder, Stamp, is_dataset
from headrace.dashboard.data_frequency import MOST_TOP, Frequency, count_tokens, show_frequency
from headrace.dashboard.data_missing import NotFound
from headrace.dashboard.data_pieces import Pieces
from headrace.dashboard.data_stores import Newest, Stores
from headrace.dashboard.data_summary import summaries_of
from headrace.errors import HeadraceError, UsageError
from headrace.storage import TRAIN, TokenStore, read_metadata
from headrace.telemetry import encode_json

MOST_DIGITS = 18


class Context(Protocol):
    """What the server knows: the folder of the datasets, and those that runs name."""

    @property
    def data(self) -> Path: ...

    def extra_datasets(self) -> Mapping[str, Path]: ...


class DataPages:
    """Answers by name. All methods may be called from any thread."""

    def __init__(self, context: Context) -> None:
        self._context, self._folder = context, DataFolder(context.data)
        self._stores = Stores()
        self._page = DatasetPage(self._stores)
        self._frequencies: Newest[Frequency] = Newest()

    def datasets(self) -> dict[str, Path]:
        """Those of the data folder, and those that runs name and that are not among them."""
        found = dict(self._folder.datasets())
        known = set(found.values())
        for name, path in self._context.extra_datasets().items():
            if name not in found and path.resolve() not in known and is_dataset(str(path)):
                found[name] = path
        return found

    def summaries(self) -> list[dict[str, Any]]:
        return summaries_of(self.datasets())

    def dataset(self, name: str, query: Mapping[str, str]) -> dict[str, Any]:
        return self._page.describe(name, self._find(name), query.get("split", TRAIN))

    def chunk(self, name: str, query: Mapping[str, str]) -> dict[str, Any]:
        """By its index, or `document=N` for the one in which a document begins."""
        store, pieces, _ = self._open(name, query)
        size = _whole(query, "size", 512, f"{LEAST} to {MOST}")
        if "document" in query:
            index = chunk_of_document(store, _whole(query, "document", 0, "0 on"), size)
        else:
            index = _whole(query, "index", 0, "0 on")
        return show_chunk(store, pieces, index, size)

    def frequency(self, name: str, query: Mapping[str, str]) -> dict[str, Any]:
        store, pieces, stamp = self._open(name, query)
        top = _whole(query, "top", 50, f"1 to {MOST_TOP}")
        found = self._frequencies.get((store.path, store.split, stamp), lambda: count_tokens(store))
        return show_frequency(store, pieces, found, top)

    def _open(self, name: str, query: Mapping[str, str]) -> tuple[TokenStore, Pieces, Stamp | None]:
        folder, split = self._find(name), query.get("split", TRAIN)
        splits = list(dict.fromkeys(shard.split for shard in read_metadata(folder).shards if shard.documents))
        if split not in splits:
            raise NotFound(f"split {split!r}: {name} has {', '.join(splits) or 'none'}. Ask for one of them.")
        store, stamp = self._stores.open(folder, split)
        return store, self._stores.pieces(store, stamp), stamp

    def _find(self, name: str) -> Path:
        found = self.datasets().get(name)
        if found is None:
            raise NotFound(
                f"dataset {name!r}: there is none of that name in {self._context.data}. "
                f"Make it with: headrace prepare SOURCE --out {self._context.data}/NAME"
            )
        return found


Answer = Callable[[str, Mapping[str, str]], dict[str, Any]]


def routes(context: Context, pages: DataPages | None = None) -> list[Route]:
    """The last one takes every name, so the others come before it."""
    pages = pages or DataPages(context)
    return [
        Route("/api/data/{name:anything}/chunk", _route(pages.chunk), methods=["GET"]),
        Route("/api/data/{name:anything}/frequency", _route(pages.frequency), methods=["GET"]),
        Route("/api/data/{name:anything}", _route(pages.dataset), methods=["GET"]),
    ]


def _route(answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        status, found = await run_in_threadpool(_answered, answer, request)
        return Response(found, status, media_type="application/json", headers={"cache-control": "no-store"})

    return respond


def _answered(answer: Answer, request: Request) -> tuple[int, bytes]:
    """Off the event loop: disks are slow, and so is decoding."""
    try:
        return 200, encode_json(answer(request.path_params["name"], request.query_params))
    except NotFound as error:
        return 404, encode_json({"error": str(error)})
    except (HeadraceError, OSError) as error:
        return 400, encode_json({"error": str(error)})


def _whole(query: Mapping[str, str], name: str, default: int, range_: str) -> int:
    given = query.get(name)
    if given is None:
        return default
    if not given.removeprefix("-").isdecimal() or not given.isascii() or len(given) > MOST_DIGITS:
        raise UsageError(f"{name} {given[:40]!r}: it must be a whole number, {range_}. Ask for {name}={default}.")
    return int(given)
