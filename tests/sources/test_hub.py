"""Addresses, listings and errors of datasets on the hub."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest_hub import TOKEN, jsonl
from headrace.errors import HeadraceError, SourceNotFound, Unreachable
from headrace.sources import hub, open_source, read_spans
from hub_server import HubServer


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("data/*.parquet", "data/a.parquet", True),
        ("data/*.parquet", "data/x/a.parquet", False),
        ("**/*.parquet", "a.parquet", True),
        ("**/*.parquet", "x/y/a.parquet", True),
        ("a?[0-2].txt", "ab1.txt", True),
        ("a[!b].txt", "ab.txt", False),
        ("a.txt", "aztxt", False),
    ],
)
def test_globs(pattern, path, matches):
    assert bool(hub.glob_expression(pattern).fullmatch(path)) is matches


def test_only_the_folder_above_the_wildcards_is_listed(stand_in: HubServer):
    assert hub.common_folder(["train/chunk*/*.zst"]) == "train"
    assert hub.common_folder(["a/b/*.x", "a/c/*.x"]) == ""
    assert hub.common_folder(["*.x"]) == ""
    stand_in.push("datasets", "o/n", {"train/a.jsonl": b"", "test/b.jsonl": b""})
    hub.list_matching("o/n", ["train/*"], None)
    assert stand_in.asked("/tree/")[0].path.partition("?")[0].endswith("/train")


def test_a_listing_in_many_pages(stand_in: HubServer):
    files = {f"data/{number:02}.jsonl": bytes(number) for number in range(25)}
    commit = stand_in.push("datasets", "o/n", {**files, "README.md": b"x"})
    stand_in.page_entries = 4
    assert hub.list_tree("o/n", "", None) == (commit, [("README.md", 1), *((p, len(d)) for p, d in files.items())])
    assert len(stand_in.asked("/tree/")) == 7
    assert hub.list_tree("o/n", "no/such/folder", None) == (commit, [])


def test_revisions(stand_in: HubServer):
    first = stand_in.push("datasets", "o/n", {"a.jsonl": b"1"}, "v1")
    second = stand_in.push("datasets", "o/n", {"a.jsonl": b"22"}, "refs/pr/1")
    stand_in.push("datasets", "o/n", {"a.jsonl": b"333"})
    sizes = {first: 1, second: 2}
    for asked, commit in {"v1": first, first: first, "refs/pr/1": second}.items():
        (file,) = open_source("hf://datasets/o/n/a.jsonl", revision=asked).files
        assert (file.size, file.revision) == (sizes[commit], commit)
    (file,) = open_source("hf://datasets/o/n@refs%2Fpr%2F1/a.jsonl").files
    assert file.path == f"hf://datasets/o/n@{second}/a.jsonl"
    with pytest.raises(SourceNotFound, match="'o/n' has no revision 'v9'"):
        open_source("hf://datasets/o/n@v9")


def test_a_renamed_dataset_is_followed(stand_in: HubServer):
    commit = stand_in.push("datasets", "new/name", {"a.jsonl": jsonl(["moved"])})
    stand_in.renamed["old/name"] = "new/name"
    source = open_source("hf://datasets/old/name")
    assert source.files[0].revision == commit
    assert next(read_spans(source.spans(1 << 20), source.options)).texts == [b"moved"]


def test_what_the_hub_said_once_is_not_asked_again(stand_in: HubServer):
    commit = stand_in.push("datasets", "o/n", {"a.jsonl": b"1"})
    first = open_source("hf://datasets/o/n/*.jsonl")
    stand_in.push("datasets", "o/n", {"a.jsonl": b"22", "b.jsonl": b"3"})
    asked = len(stand_in.requests)
    again = open_source("hf://datasets/o/n/*.jsonl", known=first.listings)
    assert again == first
    assert again.files[0].revision == commit
    assert len(stand_in.requests) == asked
    assert len(open_source("hf://datasets/o/n/*", known=first.listings).files) == 2


def test_missing_repositories_and_near_names(stand_in: HubServer):
    for name, hint in {
        "nobody/nothing": "",
        "HuggingFaceFW/finewebedu": " Did you mean 'finewebedu' (HuggingFaceFW/fineweb-edu)?",
        "cerebras/SlimPajama": " Did you mean 'slimpajama' (cerebras/SlimPajama-627B)?",
    }.items():
        expected = f"has no public dataset {name!r} (asked: {stand_in.endpoint}).{hint} Check the spelling;"
        with pytest.raises(SourceNotFound, match=re.escape(expected)):
            open_source(f"hf://datasets/{name}")


def test_a_gated_dataset_says_where_and_what(stand_in: HubServer, monkeypatch: pytest.MonkeyPatch):
    stand_in.push("datasets", "o/n", {"a.jsonl": jsonl(["let in"])})
    stand_in.gate("datasets", "o/n", TOKEN)
    message = f"is gated. Accept its terms at {stand_in.endpoint}/datasets/o/n, set HF_TOKEN to a token"
    with pytest.raises(SourceNotFound, match=re.escape(message)):
        open_source("hf://datasets/o/n")
    monkeypatch.setenv("HF_TOKEN", "hf_another")
    with pytest.raises(SourceNotFound, match="with the account of your token, which has no access yet") as caught:
        open_source("hf://datasets/o/n")
    assert "hf_another" not in str(caught.value)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    source = open_source("hf://datasets/o/n")
    assert next(read_spans(source.spans(1 << 20), source.options)).texts == [b"let in"]


def test_access_lost_on_the_way(stand_in: HubServer):
    stand_in.push("datasets", "o/n", {"a.jsonl": jsonl(["x"])})
    source = open_source("hf://datasets/o/n")
    stand_in.gate("datasets", "o/n", TOKEN)
    with pytest.raises(SourceNotFound, match="is gated"):
        list(read_spans(source.spans(1 << 20), source.options))


def test_offline_names_the_variable():
    with pytest.raises(Unreachable, match=r"for 'roneneldan/TinyStories': HF_HUB_OFFLINE is set.*python-stdlib"):
        open_source("tinystories")


def test_no_hub_there(stand_in: HubServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(
        Unreachable, match=r"'o/n' at http://127.0.0.1:9 \(.*refused.*Check the network and HF_ENDPOINT"
    ):
        open_source("hf://datasets/o/n")


def test_a_hub_in_trouble_is_asked_again(stand_in: HubServer):
    stand_in.push("datasets", "o/n", {"a.jsonl": b"1"})
    stand_in.fail("/api/datasets/o/n", "503", 2)
    stand_in.fail("/tree/", "cut")
    assert len(open_source("hf://datasets/o/n").files) == 1
    stand_in.fail("/api/datasets/o/n", "500", 9)
    with pytest.raises(Unreachable, match=r"'o/n' at .*500 Internal Server Error"):
        open_source("hf://datasets/o/n")


def test_what_is_no_hub(stand_in: HubServer):
    stand_in.fail("/api/", "200")
    with pytest.raises(Unreachable, match=r"does not answer as a hub does when asked for 'o/n'. Check HF_ENDPOINT"):
        open_source("hf://datasets/o/n")


def test_a_hub_that_stalls_ends_in_an_error(stand_in: HubServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("headrace.hub.WAITS", ())
    stand_in.push("datasets", "o/n", {"a.jsonl": b"1"})
    stand_in.fail("/tree/", "stall")
    with pytest.raises(Unreachable, match=r"gave no answer for 1 s, 1 times over.*HF_HUB_DOWNLOAD_TIMEOUT=60"):
        open_source("hf://datasets/o/n")


def test_a_file_in_the_cache_needs_no_hub(stand_in: HubServer, monkeypatch: pytest.MonkeyPatch):
    from huggingface_hub import hf_hub_download

    commit = stand_in.push("datasets", "o/n", {"a.jsonl": b'{"text": "a"}\nbad\n', "b.jsonl": b'{"text": "b"}\n'})
    source = open_source("hf://datasets/o/n")
    hf_hub_download("o/n", "a.jsonl", repo_type="dataset", revision=commit, endpoint=stand_in.endpoint)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    first, second = source.spans(1 << 20)
    (batch,) = read_spans([first], source.options)
    assert batch.texts == [b"a"]
    assert batch.rejects[0][:2] == (f"hf://datasets/o/n@{commit}/a.jsonl", "line 2")
    with pytest.raises(HeadraceError, match="HF_HUB_OFFLINE is set, and what is needed is not in the cache"):
        list(read_spans([second], source.options))


def test_the_token_goes_to_the_hub_only(stand_in: HubServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    stand_in.push("datasets", "o/n", {"a.jsonl": jsonl(["far away"])})
    stand_in.signature = "first"
    source = open_source("hf://datasets/o/n")
    assert next(read_spans(source.spans(1 << 20), source.options)).texts == [b"far away"]
    stand_in.signature = "second"  # the address that was given is good no longer
    assert next(read_spans(source.spans(1 << 20), source.options)).texts == [b"far away"]
    assert {request.elsewhere: request.token for request in stand_in.requests} == {False: TOKEN, True: None}
    assert [request.status for request in stand_in.requests if request.elsewhere].count(403) == 1
