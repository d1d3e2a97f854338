from __future__ import annotations

import pytest

from headrace.errors import SourceNotFound, UsageError
from headrace.sources import hub, open_source

TREES = {
    "cerebras/SlimPajama-627B": [
        "README.md",
        "train/chunk1/example_train_0.jsonl.zst",
        "train/chunk1/example_train_10.jsonl.zst",
        "train/chunk1/example_train_9.jsonl.zst",
        "train/chunk10/example_train_1.jsonl.zst",
        "train/chunk2/example_train_1.jsonl.zst",
        "validation/chunk1/example_holdout_0.jsonl.zst",
        "test/chunk1/example_holdout_0.jsonl.zst",
    ],
    "HuggingFaceFW/fineweb-edu": ["data/CC-MAIN/000.parquet", "sample/10BT/000.parquet", "sample/100BT/0.parquet"],
    "Salesforce/wikitext": [
        f"wikitext-{name}/{split}-0.parquet" for name in ("103-raw-v1", "2-v1") for split in ("train", "validation")
    ],
    "roneneldan/TinyStories": ["data/train-0.parquet", "data/validation-0.parquet", "TinyStories-train.txt"],
    "Skylion007/openwebtext": ["plain_text/train-00000-of-00080.parquet"],
    "someone/parquets": ["data/train-0.parquet", "data/test-0.parquet", "README.md", ".hidden/train-1.parquet"],
    "someone/lines": ["all.jsonl.gz", "notes.txt"],
}


@pytest.fixture(autouse=True)
def listing(monkeypatch):
    asked = []

    def list_tree(repo, folder, revision):
        asked.append((repo, folder, revision))
        return revision or "c0ffee", [(path, 7) for path in TREES[repo] if path.startswith(folder)]

    monkeypatch.setattr(hub, "list_tree", list_tree)
    return asked


def paths(argument, **options):
    return [hub.parse(file.path).path for file in open_source(argument, **options).files]


@pytest.mark.parametrize(
    ("name", "split", "expected"),
    [
        ("finewebedu", None, ["sample/10BT/000.parquet"]),
        ("fineweb-edu", "train", ["sample/10BT/000.parquet"]),
        ("HuggingFaceFW/fineweb-edu", None, ["sample/10BT/000.parquet"]),
        ("wikitext103", None, ["wikitext-103-raw-v1/train-0.parquet"]),
        ("wikitext-103", "validation", ["wikitext-103-raw-v1/validation-0.parquet"]),
        ("tinystories", None, ["data/train-0.parquet"]),
        ("TinyStories", "validation", ["data/validation-0.parquet"]),
        ("openwebtext", None, ["plain_text/train-00000-of-00080.parquet"]),
        ("slimpajama", "validation", ["validation/chunk1/example_holdout_0.jsonl.zst"]),
        ("cerebras/SlimPajama-627B", "test", ["test/chunk1/example_holdout_0.jsonl.zst"]),
        ("someone/parquets", None, ["data/train-0.parquet"]),
        ("someone/parquets", "test", ["data/test-0.parquet"]),
        ("someone/lines", None, ["all.jsonl.gz"]),
        ("hf://datasets/someone/parquets", None, ["data/train-0.parquet"]),
        ("hf://datasets/someone/parquets/data", None, ["data/test-0.parquet", "data/train-0.parquet"]),
        ("hf://datasets/someone/parquets/**/t*-0.parquet", None, ["data/test-0.parquet", "data/train-0.parquet"]),
        ("hf://datasets/someone/lines/all.jsonl.gz", None, ["all.jsonl.gz"]),
    ],
)
def test_names(name, split, expected):
    assert paths(name, split=split) == expected


def test_slimpajama_in_natural_order_pinned_to_a_commit(listing):
    source = open_source("slimpajama")
    assert [file.path.rpartition("train/")[2] for file in source.files] == [
        "chunk1/example_train_0.jsonl.zst",
        "chunk1/example_train_9.jsonl.zst",
        "chunk1/example_train_10.jsonl.zst",
        "chunk2/example_train_1.jsonl.zst",
        "chunk10/example_train_1.jsonl.zst",
    ]
    assert source.files[0].path.startswith("hf://datasets/cerebras/SlimPajama-627B@c0ffee/train/")
    assert (source.files[0].revision, source.files[0].compression, source.total_bytes) == ("c0ffee", "zst", 35)
    assert listing == [("cerebras/SlimPajama-627B", "train", None)]
    assert len(source.spans(100)) == 5


def test_revision_from_the_flag_or_the_url(listing):
    assert open_source("tinystories", revision="v1").files[0].revision == "v1"
    url = "hf://datasets/someone/lines@refs%2Fpr%2F1/all.jsonl.gz"
    assert open_source(url).files[0].path == url
    assert listing[-1][2] == "refs/pr/1"


@pytest.mark.parametrize(
    ("name", "options", "kind", "message"),
    [
        (
            "openwebtext",
            {"split": "test"},
            UsageError,
            "has no split 'test'. Pass --split with one of: train",
        ),
        ("someone/parquets", {"split": "dev"}, SourceNotFound, "No file of 'someone/parquets' has 'dev' in its path"),
        ("hf://datasets/someone/lines/*.parquet", {}, SourceNotFound, "has no file that matches"),
        (["wikitext-103", "tinystories"], {}, UsageError, "Prepare it on its own"),
        ("hf://datasets/x", {}, SourceNotFound, "is not of the form"),
    ],
)
def test_what_cannot_be(name, options, kind, message):
    with pytest.raises(kind, match=message):
        open_source(name, **options)


def test_a_catalogue_name_goes_before_a_folder_but_a_repository_id_does_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("tinystories", "roneneldan/TinyStories"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.txt").write_text("local")
    assert open_source("tinystories").files[0].path.startswith("hf://")
    assert not open_source("./tinystories").files[0].path.startswith("hf://")
    assert not open_source("roneneldan/TinyStories").files[0].path.startswith("hf://")


def test_the_standard_library_is_there_without_a_network(read_all):
    result = read_all("python-stdlib")
    assert len(result.texts) > 100
    assert any(b"class OrderedDict" in text for text in result.texts)
    files = open_source("python-stdlib").files
    assert not [file for file in files if "site-packages" in file.path or "/test/" in file.path]
