"""A stand-in for the Hugging Face hub on loopback: what huggingface_hub asks for, with faults on demand and a log.

It keeps commits and branches, gates repositories, renames them, lists trees in pages, answers ranges, and may send
readers to a second address for the bytes, as the real one does. What it was asked for stands in `requests`.
"""

from __future__ import annotations

import hashlib
import json
import re
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

API = re.compile(r"/api/(?P<kind>datasets|models)/(?P<repo>[^/]+(?:/[^/]+)?)(?:/(?P<what>revision|tree)/(?P<rest>.+))?")
FILE = re.compile(r"/(?P<kind>datasets/)?(?P<repo>[^/]+(?:/[^/]+)?)/resolve/(?P<revision>[^/]+)/(?P<path>.+)")


class Request(NamedTuple):
    method: str
    path: str
    token: str | None
    status: int
    sent: int  # bytes of the body
    elsewhere: bool  # at the second address


@dataclass
class Repo:
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    token: str | None = None  # None: open to all

    def commit(self, revision: str) -> str | None:
        return revision if revision in self.commits else self.branches.get(revision)


@dataclass
class Fault:
    path: str  # part of the request's path
    kind: str  # "cut", "stall", or a status such as "503"
    left: int  # how often


class HubServer:
    def __init__(self) -> None:
        self.repos: dict[tuple[str, str], Repo] = {}
        self.renamed: dict[str, str] = {}
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.page_entries = 1000
        self.signature: str | None = None  # set: bytes come from the second address, to those who have it
        self.released = threading.Event()
        self._lock = threading.Lock()
        self._servers = [self._start(elsewhere) for elsewhere in (False, True)]
        self.endpoint, self.second = (f"http://127.0.0.1:{server.server_port}" for server in self._servers)

    def _start(self, elsewhere: bool) -> Server:
        handler = type("Handler", (Answer,), {"hub": self, "elsewhere": elsewhere})
        server = Server(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        return server

    def close(self) -> None:
        self.released.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def push(self, kind: str, name: str, files: Mapping[str, bytes], branch: str = "main") -> str:
        """A new commit at the head of a branch."""
        repo = self.repos.setdefault((kind, name), Repo())
        names = "".join(f"{path}\0{hashlib.sha1(data).hexdigest()}" for path, data in sorted(files.items()))
        commit = hashlib.sha1(f"{len(repo.commits)}{name}{names}".encode()).hexdigest()
        repo.commits[commit] = dict(files)
        repo.branches[branch] = commit
        return commit

    def gate(self, kind: str, name: str, token: str) -> None:
        self.repos[kind, name].token = token

    def fail(self, path: str, kind: str, times: int = 1) -> None:
        self.faults.append(Fault(path, kind, times))

    def next_fault(self, path: str) -> str | None:
        with self._lock:
            for fault in self.faults:
                if fault.left and fault.path in unquote(path):
                    fault.left -= 1
                    return fault.kind
        return None

    def log(self, request: Request) -> None:
        with self._lock:
            self.requests.append(request)

    def sent(self, suffix: str = "") -> int:
        """Bytes of files given out."""
        return sum(request.sent for request in self.requests if self._of_file(request, suffix))

    def asked(self, part: str) -> list[Request]:
        return [request for request in self.requests if part in unquote(request.path)]

    def _of_file(self, request: Request, suffix: str) -> bool:
        path = unquote(urlsplit(request.path).path)
        return (request.elsewhere or "/resolve/" in path) and path.endswith(suffix) and request.status < 300


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is no news."""


class Answer(BaseHTTPRequestHandler):
    hub: HubServer
    elsewhere: bool
    cut = False
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        fault = self.hub.next_fault(self.path)
        if fault == "stall":
            self.hub.released.wait(60)
            self.close_connection = True
        elif fault and fault != "cut":
            self.refuse(int(fault), "")
        else:
            self.cut = fault == "cut"
            self.answer(unquote(urlsplit(self.path).path))

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *words: Any) -> None:
        """`requests` has it."""

    def answer(self, path: str) -> None:
        if self.elsewhere:
            self.give_signed(path)
        elif found := API.fullmatch(path):
            self.give_api(found["kind"], found["repo"], found["what"], found["rest"] or "")
        elif found := FILE.fullmatch(path):
            self.give_file("datasets" if found["kind"] else "models", found["repo"], found["revision"], found["path"])
        else:
            self.refuse(404, "RepoNotFound")

    def repository(self, kind: str, name: str) -> Repo | None:
        """None when the answer has been given: moved, missing, or not for this caller."""
        if name in self.hub.renamed:
            place = self.path.replace(name, self.hub.renamed[name], 1)
            self.send(307, b"", {"Location": place})
            return None
        repo = self.hub.repos.get((kind, name))
        if repo is None:
            self.refuse(404 if self.token() else 401, "RepoNotFound")
        elif repo.token not in (None, self.token()):
            self.refuse(403 if self.token() else 401, "GatedRepo")
            return None
        return repo

    def token(self) -> str | None:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None

    def give_api(self, kind: str, name: str, what: str | None, rest: str) -> None:
        if (repo := self.repository(kind, name)) is None:
            return
        revision, _, folder = (rest, "", "") if what == "revision" else rest.partition("/")
        commit = repo.commit(revision or "main")
        if commit is None:
            self.refuse(404, "RevisionNotFound")
        elif what == "tree":
            self.give_tree(repo.commits[commit], folder)
        else:
            self.send_json({"_id": "1", "id": name, "sha": commit, "private": False, "gated": repo.token is not None})

    def give_tree(self, files: dict[str, bytes], folder: str) -> None:
        prefix = f"{folder}/" if folder else ""
        names = sorted(path for path in files if path.startswith(prefix))
        if not names:
            self.refuse(404, "EntryNotFound")
            return
        folders = sorted({path.rpartition("/")[0] for path in names} - {"", folder})
        entries = [{"type": "directory", "path": path, "size": 0, "oid": "0" * 40} for path in folders]
        entries += [
            {"type": "file", "path": path, "size": len(files[path]), "oid": etag(files[path])} for path in names
        ]
        parts = urlsplit(self.path)
        first = int(parse_qs(parts.query).get("cursor", ["0"])[0])
        last = first + self.hub.page_entries
        link = f'<{self.hub.endpoint}{parts.path}?recursive=true&cursor={last}>; rel="next"'
        self.send_json(entries[first:last], {"Link": link} if last < len(entries) else {})

    def give_file(self, kind: str, name: str, revision: str, path: str) -> None:
        if (repo := self.repository(kind, name)) is None:
            return
        commit = repo.commit(revision)
        if commit is None:
            self.refuse(404, "RevisionNotFound")
        elif path not in repo.commits[commit]:
            self.refuse(404, "EntryNotFound", {"X-Repo-Commit": commit})
        elif self.hub.signature is not None:
            data = repo.commits[commit][path]
            place = f"{self.hub.second}/{kind}/{name}/{commit}/{quote(path)}?Signature={self.hub.signature}"
            linked = {"X-Linked-Size": str(len(data)), "X-Linked-Etag": etag(data), "X-Repo-Commit": commit}
            self.send(302, b"", {"Location": place, **linked})
        else:
            self.give_bytes(repo.commits[commit][path], {"X-Repo-Commit": commit})

    def give_signed(self, path: str) -> None:
        _, kind, owner, name, commit, file = path.split("/", 5)
        if parse_qs(urlsplit(self.path).query).get("Signature") != [self.hub.signature]:
            self.refuse(403, "")
        else:
            self.give_bytes(self.hub.repos[kind, f"{owner}/{name}"].commits[commit][file], {})

    def give_bytes(self, data: bytes, headers: dict[str, str]) -> None:
        headers |= {"ETag": f'"{etag(data)}"', "Accept-Ranges": "bytes"}
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if found is None:
            self.send(200, data, headers)
            return
        start, stop = int(found[1]), min(len(data), int(found[2] or len(data)) + 1)
        if start >= stop:
            self.refuse(416, "", {"Content-Range": f"bytes */{len(data)}"})
        else:
            self.send(206, data[start:stop], {**headers, "Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"})

    def refuse(self, status: int, code: str, headers: Mapping[str, str] = {}) -> None:
        self.cut = False
        self.send(status, b"{}", {**headers, **({"X-Error-Code": code} if code else {})})

    def send_json(self, value: object, headers: Mapping[str, str] = {}) -> None:
        self.send(200, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})

    def send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        sent = body if self.command == "GET" else b""
        sent = sent[: len(sent) // 2] if self.cut else sent
        self.hub.log(Request(self.command, self.path, self.token(), status, len(sent), self.elsewhere))
        self.wfile.write(sent)
        if self.cut:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)


def etag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
