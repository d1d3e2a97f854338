from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from starlette.testclient import TestClient

from conftest_dashboard import HOST, a_run, append, rows, run_event, sample_event, write_run
from headrace.dashboard.app import make_app
from headrace.dashboard.security import HEADERS
from headrace.dashboard.shell import escaped

HOSTILE = [
    "<script>alert(1)</script>".replace("/", "∕"),  # a name has no slash
    "</script".replace("/", "\\"),
    "<!--<script>",
    "\"'><img src=x onerror=alert(1)>",
    "a,b",
    "a&b=c#d?e%2fg",
    "up..%2f..%2fetc",
    "line\nend",
    "tab\tand  spaces ",
    "ünï·日本語·🏳️‍🌈·\u2028\u2029\u202e",
    "javascript:alert(1)",
    "-rf",
]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write_run(tmp_path / "runs" / "one", a_run(1000))
    write_run(tmp_path / "runs" / "group" / "two", a_run(600), lr=1e-3)
    return tmp_path / "runs"


@pytest.fixture
def client(runs: Path) -> Iterator[TestClient]:
    with client_of(runs) as client:
        yield client


def client_of(runs: Path, **more: Any) -> TestClient:
    app = make_app(runs, runs.parent / "data", **more)
    return TestClient(app, base_url=HOST, raise_server_exceptions=False)


async def ask(app: Any, path: str, query: str = "") -> tuple[int, bytes]:
    """One request as a server hands it on; a client would put the path in order before it sends it."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "http_version": "1.1",
        "query_string": query.encode(),
        "root_path": "",
    }
    scope |= {"path": unquote(path), "raw_path": path.encode(), "headers": [(b"host", b"localhost")]}
    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def state_in(page: str) -> Any:
    found = re.findall(r'<script type="application/json" id="state">(.*?)</script>', page, re.DOTALL)
    assert len(found) == 1
    return json.loads(found[0])


def test_the_list_of_runs(client: TestClient) -> None:
    answer = client.get("/api/runs").json()
    assert [one["name"] for one in answer["runs"]] == ["group/two", "one"]
    assert answer["datasets"] == []
    assert answer["folder"].endswith("runs")
    assert answer["instance"]


def test_a_folder_that_does_not_exist_yet_is_empty(tmp_path: Path) -> None:
    with client_of(tmp_path / "runs") as client:
        assert client.get("/api/runs").json()["runs"] == []
        assert client.get("/").status_code == 200


def test_one_run(client: TestClient) -> None:
    answer = client.get("/api/run/one").json()
    assert answer["summary"]["status"] == "finished"
    assert answer["columns"]["steps"] == list(range(10, 1001, 10))
    assert answer["evals"]["steps"] == list(range(100, 1001, 100))
    assert len(answer["samples"]) == 10
    assert answer["config"]["train.lr"] == 3e-4
    assert answer["config"]["recipe.model.name"] == "ten"
    assert answer["system"]["device"] == "cpu"
    assert answer["diagnosis"]["verdict"].startswith("Compute-bound")
    assert answer["diagnosis"]["phases"]
    assert answer["diagnosis"]["tree"].count("\n") > 3
    assert answer["mix"] is None
    assert answer["resumes"] == []


def test_fewer_points_and_a_part_of_the_steps(client: TestClient) -> None:
    few = client.get("/api/run/one?points=7").json()["columns"]
    assert len(few["steps"]) <= 7
    assert {len(few[name]) for name in few if name not in ("shares", "metrics")} == {len(few["steps"])}
    part = client.get("/api/run/group/two?from=200&to=300").json()
    assert part["columns"]["steps"] == list(range(200, 301, 10))
    assert part["evals"]["steps"] == [200, 300]


def test_runs_compared(client: TestClient) -> None:
    answer = client.get("/api/compare?runs=one,group/two&points=20").json()
    assert [row["summary"]["name"] for row in answer["runs"]] == ["one", "group/two"]
    assert all(len(row["columns"]["steps"]) <= 20 for row in answer["runs"])
    assert answer["differences"] == [{"name": "train.lr", "values": [3e-4, 1e-3]}]


@pytest.mark.parametrize(
    "name", ["", "?points=0", "?points=-3", "?points=1e9", "?points=99999999999999999999", "?from=x", "?to=٣"]
)
def test_wrong_numbers_are_refused_in_words(client: TestClient, name: str) -> None:
    answer = client.get(f"/api/run/one{name}")
    if name:
        assert answer.status_code == 400
        assert "must be a whole number" in answer.json()["error"]


def test_what_is_compared_has_to_be_named(client: TestClient) -> None:
    assert client.get("/api/compare").status_code == 400
    assert client.get("/api/compare?runs=").status_code == 400
    assert client.get(f"/api/compare?runs={','.join(map(str, range(40)))}").status_code == 400
    assert client.get("/api/compare?runs=one,nowhere").status_code == 404


@pytest.mark.parametrize("path", ["/", "/run/one", "/compare?runs=one,group/two", "/data"])
def test_a_page_has_the_first_answer_in_it(client: TestClient, path: str) -> None:
    page = client.get(path)
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    api = {"/": "/api/runs", "/data": "/api/runs"}.get(path, f"/api{path}")
    known, asked = state_in(page.text), client.get(api).json()
    assert known.keys() == asked.keys()
    assert known.get("runs") == asked.get("runs")
    assert known.get("columns") == asked.get("columns")


@pytest.mark.parametrize(
    "path", ["/run/nowhere", "/data/nowhere", "/nowhere", "/run/one/checkpoints", "/compare?runs=x"]
)
def test_a_page_that_is_not_there_is_a_page_too(client: TestClient, path: str) -> None:
    page = client.get(path)
    assert page.status_code == 404
    assert "<!doctype html>" in page.text
    assert state_in(page.text)["error"]


@pytest.mark.parametrize(
    "name",
    [
        "..", "../..", "%2e%2e", "..%2f..%2fsecret", "%2fetc%2fpasswd", "one/..", "one%2f..%2f..%2fsecret", "one%00",
        "..%5c..", "%252e%252e%252fsecret", "one/events.jsonl", "/etc/passwd", "group", "~", ".", "%c0%ae%c0%ae%2f",
    ],
)  # fmt: skip
def test_no_name_leads_out_of_the_folder(runs: Path, name: str) -> None:
    write_run(runs.parent / "secret", a_run(20))
    app = make_app(runs, runs.parent / "data")
    for api in ("/api/run/", "/run/", "/static/", "/data/", "/api/data/"):
        status, body = asyncio.run(ask(app, api + name))
        assert status in (400, 404), api
        assert b"root:" not in body
        assert b"25300000" not in body


def test_a_link_out_of_the_folder_is_not_there(runs: Path) -> None:
    write_run(runs.parent / "secret", a_run(20))
    (runs / "link").symlink_to(runs.parent / "secret")
    with client_of(runs) as client:
        assert client.get("/api/run/link").status_code == 404
        assert "link" not in [one["name"] for one in client.get("/api/runs").json()["runs"]]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/", "/api/runs", "/api/run/one", "/events", "/static/main.js", "/nowhere"])
def test_nothing_can_be_changed(client: TestClient, method: str, path: str) -> None:
    answer = client.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


def test_a_head_has_no_body(client: TestClient) -> None:
    answer = client.head("/api/runs")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "evil.example:8765", "localhost.evil.example", "127.0.0.1.evil.example", "", "[::2]:8765",
        "0.0.0.0", "127.0.0.1:8765:1", "127.0.0.1@evil.example", "[::1]evil", "169.254.169.254", "localhost:x",
    ],
)  # fmt: skip
def test_a_foreign_host_is_refused(client: TestClient, host: str) -> None:
    for path in ("/", "/api/runs", "/static/main.js", "/events", "/nowhere"):
        answer = client.get(path, headers={"host": host})
        assert answer.status_code == 403, path
        assert "--allow-host" in answer.json()["error"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]", "[0:0::1]:8765", "localhost.:80"])
def test_the_machine_itself_is_answered(client: TestClient, host: str) -> None:
    assert client.get("/api/runs", headers={"host": host}).status_code == 200


def test_other_names_can_be_allowed(runs: Path) -> None:
    with client_of(runs, hosts=["trainer.lan", "fd00::5"]) as client:
        assert client.get("/api/runs", headers={"host": "Trainer.LAN:8765"}).status_code == 200
        assert client.get("/api/runs", headers={"host": "[fd00:0::5]:8765"}).status_code == 200
        assert client.get("/api/runs", headers={"host": "other.lan"}).status_code == 403


def test_two_hosts_are_none(client: TestClient) -> None:
    request = client.build_request("GET", "/api/runs", headers=[("host", "localhost"), ("host", "evil.example")])
    assert client.send(request).status_code == 403


def test_every_answer_is_guarded(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = ["/", "/run/one", "/nowhere", "/api/runs", "/api/run/nowhere", "/api/run/one?points=x", "/api/nothing"]
    paths += ["/static/main.js", "/static/plotly.min.js", "/static/none.js", "/static/tokens.css", "/api/data/none"]
    answers = [client.get(path) for path in paths]
    answers += [client.post("/"), client.get("/", headers={"host": "evil.example"}), client.head("/")]
    etag = client.get("/static/main.js").headers["etag"]
    answers.append(client.get("/static/main.js", headers={"if-none-match": etag}))
    monkeypatch.setattr("headrace.dashboard.context.Context.all_runs", lambda self: 1 / 0)
    answers.append(client.get("/api/runs"))
    assert {answer.status_code for answer in answers} == {200, 304, 400, 403, 404, 405, 500}
    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers.get_list(name.decode()) == [value.decode()], answer.request.url


def test_a_fault_of_the_server_tells_nothing(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.dashboard.context.Context.all_runs", lambda self: 1 / 0)
    answer = client.get("/api/runs")
    assert answer.status_code == 500
    assert "ZeroDivision" not in answer.text
    assert answer.json()["error"].startswith("The server failed")


def test_the_policy_lets_in_nothing_from_elsewhere(client: TestClient) -> None:
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_the_shell_keeps_to_the_policy(client: TestClient) -> None:
    """No script, no style and no handler in the page itself, and nothing from another server."""
    page = client.get("/").text
    assert re.findall(r"<script(?![^>]*(?:src=|application/json))", page) == []
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=", page) == []
    assert re.findall(r"(?:src|href)=\"(?!/|#)", page) == []


def test_hostile_names_are_names(runs: Path) -> None:
    for name in HOSTILE:
        write_run(runs / name, [run_event(), *rows(1, 3)])
    app = make_app(runs, runs.parent / "data")
    known = json.loads(asyncio.run(ask(app, "/api/runs"))[1])["runs"]
    assert {one["name"] for one in known} == {*HOSTILE, "one", "group/two"}
    assert len(state_in(asyncio.run(ask(app, "/"))[1].decode())["runs"]) == len(known)
    for name in HOSTILE:
        path = "".join(f"%{byte:02x}" for byte in name.encode())
        status, page = asyncio.run(ask(app, f"/run/{path}"))
        assert status == 200
        assert state_in(page.decode())["summary"]["name"] == name
        answer = json.loads(asyncio.run(ask(app, "/api/compare", query=f"runs={path},one"))[1])
        assert [row["summary"]["name"] for row in answer["runs"]] == [name, "one"]


def test_a_name_that_is_no_utf8_can_be_opened(runs: Path) -> None:
    folder = Path(str(runs) + "/" + b"caf\xe9".decode("utf-8", "surrogateescape"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system has names in UTF-8 only")
    append(folder, run_event(), *rows(1, 3))
    with client_of(runs) as client:
        assert "caf\ufffd" in [one["name"] for one in client.get("/api/runs").json()["runs"]]
        assert client.get("/run/caf%EF%BF%BD").status_code == 200


@pytest.mark.parametrize(
    "text", ["</script><script>alert(1)</script>", "<!--<script>", "]]>", "&lt;", "\u2028\u2029", "\\u003c"]
)
def test_no_text_leaves_the_state(runs: Path, text: str) -> None:
    append(runs / "one", sample_event(1000, text), {"t": 1.0, "kind": "message", "text": text})
    with client_of(runs) as client:
        page = client.get("/run/one").text
    state = state_in(page)
    assert state["samples"][-1]["predicted"] == text
    assert state["messages"][-1]["text"] == text
    block = page.split('id="state">')[1].split("</script>")[0]
    assert not re.search("[<>&\u2028\u2029]", block)


def test_the_state_is_json_whatever_is_in_it() -> None:
    value = {"<k>": ["</script>", "\ud800".encode("utf-8", "replace").decode(), float("nan"), '\x00\x1f"\\']}
    assert json.loads(escaped(value)) == {"<k>": ["</script>", "?", None, '\x00\x1f"\\']}
    json.loads(escaped({"half": "\ud83d"}))


def test_static_files_are_kept_by_the_browser(client: TestClient) -> None:
    answer = client.get("/static/main.js")
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert client.get("/static/main.js", headers={"if-none-match": answer.headers["etag"]}).status_code == 304
    assert client.get("/static/nothing.js").status_code == 404
    assert client.get("/static/index.py").status_code == 404


def test_the_script_of_plotly_is_the_installed_one(client: TestClient) -> None:
    from headrace.dashboard.assets import find_plotly

    packed = client.get("/static/plotly.min.js", headers={"accept-encoding": "gzip"})
    plain = client.get("/static/plotly.min.js", headers={"accept-encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.content == plain.content == find_plotly().read_bytes()
    assert int(packed.headers["content-length"]) < len(plain.content) / 2


def test_large_answers_are_packed(runs: Path) -> None:
    write_run(runs / "long", [run_event(), *rows(1, 1500)])
    with (
        client_of(runs) as client,
        client.stream("GET", "/api/run/long", headers={"accept-encoding": "gzip"}) as answer,
    ):
        raw = b"".join(answer.iter_raw())
    assert answer.headers["content-encoding"] == "gzip"
    assert len(json.loads(gzip.decompress(raw))["columns"]["steps"]) == 1500
