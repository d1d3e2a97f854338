from __future__ import annotations

from types import SimpleNamespace

import pytest

from headrace.errors import HeadraceError, SourceNotFound
from headrace.sources import hub, open_source, read_spans


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


def test_only_the_folder_above_the_wildcards_is_listed():
    assert hub.common_folder(["train/chunk*/*.zst"]) == "train"
    assert hub.common_folder(["a/b/*.x", "a/c/*.x"]) == ""
    assert hub.common_folder(["*.x"]) == ""


def test_no_network_is_said_so():
    with pytest.raises(HeadraceError, match=r"could not be reached for 'roneneldan/TinyStories'.*python-stdlib"):
        open_source("tinystories")


def test_a_file_that_is_not_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(HeadraceError, match="could not be reached for 'o/n'"):
        hub.fetch(f"hf://datasets/o/n@{'0' * 40}/a.jsonl")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("GatedRepoError", "is gated. Accept its terms at https://huggingface.co/datasets/o/n"),
        ("RepositoryNotFoundError", "The hub has no public dataset 'o/n'"),
        ("RevisionNotFoundError", "has no revision 'v9'"),
    ],
)
def test_the_hubs_errors_are_explained(monkeypatch, error, message):
    import huggingface_hub

    kind = getattr(huggingface_hub.errors, error)

    def refuse(*_, **__):
        raise kind.__new__(kind)  # its own constructor wants an HTTP response

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", refuse)
    with pytest.raises(SourceNotFound, match=message):
        hub.list_files("o/n", ["**"], "v9")


def test_files_are_listed_at_one_commit(monkeypatch):
    import huggingface_hub

    def tree(self, repo, folder, *, recursive, revision, repo_type):
        assert (repo, folder, recursive, revision, repo_type) == ("o/n", "data", True, "c0ffee", "dataset")
        return [SimpleNamespace(path="data/x"), SimpleNamespace(path="data/a.parquet", size=3)]

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *_, **__: SimpleNamespace(sha="c0ffee"))
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_tree", tree)
    assert hub.list_files("o/n", ["data/*"], None) == [("hf://datasets/o/n@c0ffee/data/a.parquet", 3)]


def test_a_hub_file_is_read_from_where_it_was_fetched_under_its_own_name(tmp_path, monkeypatch):
    (tmp_path / "blob").write_bytes(b'{"text": "a"}\nbad\n')
    monkeypatch.setattr(hub, "list_tree", lambda *_: ("c0ffee", [("a.jsonl", 18)]))
    monkeypatch.setattr(hub, "fetch", lambda url: str(tmp_path / "blob"))
    source = open_source("hf://datasets/o/n/a.jsonl")
    (batch,) = read_spans(source.spans(1 << 20), source.options)
    assert batch.texts == [b"a"]
    assert batch.rejects[0][:2] == ("hf://datasets/o/n@c0ffee/a.jsonl", "line 2")
