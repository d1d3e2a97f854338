from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from headrace.errors import SourceNotFound, UsageError
from headrace.sources import open_source


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("d/part-10.jsonl", "d/part-2.jsonl", "d/sub/a.txt.gz", "d/.hidden.jsonl", "d/.git/x.py", "d/x.bin"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"text": name}) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(*arguments, **options):
    files = open_source(list(arguments), **options).files
    assert all(os.path.isabs(file.path) for file in files)
    return [os.path.relpath(file.path) for file in files]


def test_a_folder_in_natural_order_without_hidden_and_unknown_files(folder):
    assert names("d") == ["d/part-2.jsonl", "d/part-10.jsonl", "d/sub/a.txt.gz"]
    assert [(file.format, file.compression) for file in open_source("d").files] == [
        ("jsonl", None),
        ("jsonl", None),
        ("text", "gz"),
    ]


def test_globs(folder):
    assert names("d/*.jsonl") == ["d/part-2.jsonl", "d/part-10.jsonl"]
    assert names("d/**") == ["d/part-2.jsonl", "d/part-10.jsonl", "d/sub/a.txt.gz"]
    assert names("**/*.gz") == ["d/sub/a.txt.gz"]


def test_arguments_keep_their_order_and_duplicates_go(folder):
    assert names("d/part-10.jsonl", Path("d"), "d/../d/part-2.jsonl") == [
        "d/part-10.jsonl",
        "d/part-2.jsonl",
        "d/sub/a.txt.gz",
    ]
    assert open_source(["d/part-10.jsonl", Path("d")]).name == "d/part-10.jsonl, d"


def test_a_name_with_brackets_is_a_file_before_it_is_a_glob(folder):
    Path("a[1].txt").write_text("x")
    assert names("a[1].txt") == ["a[1].txt"]


def test_a_loop_of_links_ends(folder):
    Path("d/sub/loop").symlink_to(folder / "d")
    assert len(names("d")) == 3


@pytest.mark.parametrize(
    ("argument", "kind", "message"),
    [
        ("d/x.bin", UsageError, r"'d/x.bin' has no suffix that headrace reads \(.jsonl .ndjson .json .*\.zst"),
        ("d/none.jsonl", SourceNotFound, "There is no file or folder 'd/none.jsonl'"),
        ("d/none", SourceNotFound, "There is no file or folder 'd/none'"),
        ("d/*.parquet", SourceNotFound, "'d/.*' matches no file"),
        ("slimpajamas", SourceNotFound, "Did you mean 'slimpajama'.*tinystories, openwebtext, python-stdlib"),
        ("zzz", SourceNotFound, r"no name in the catalogue. The catalogue: slimpajama"),
        ("empty", SourceNotFound, "The folder 'empty' holds no file"),
        ("s3://bucket/x.jsonl", UsageError, "is not a place headrace reads from"),
        ("", UsageError, "No source was named"),
    ],
)
def test_what_cannot_be_found(folder, argument, kind, message):
    Path("empty").mkdir()
    with pytest.raises(kind, match=message):
        open_source(argument)


def test_a_broken_link_is_named(folder):
    Path("d/gone.jsonl").symlink_to(folder / "nowhere")
    for argument in ("d", "d/gone.jsonl"):
        with pytest.raises(UsageError, match=r"d/gone.jsonl cannot be read: No such file"):
            open_source(argument)


def test_a_file_that_may_not_be_read_is_named(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("part-2.jsonl"))
    with pytest.raises(UsageError, match=r"part-2.jsonl cannot be read: Permission denied"):
        open_source("d")


@pytest.mark.parametrize("options", [{"split": "test"}, {"revision": "main"}, {"separator": ""}, {"text_field": 'a"b'}])
def test_options_that_cannot_be_right(folder, options):
    with pytest.raises(UsageError):
        open_source("d", **options)
