"""TokenStore in a notebook."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from dataset import EOS, write_dataset

from conftest_pages import check
from headrace import TokenStore, prepare


def test_counts_lengths_and_the_beginning(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"text": "<script>alert(1)</script> & more"}\n{"text": "a second, longer one"}\n' * 50
    )
    store = prepare(tmp_path / "a.jsonl", out=tmp_path / "data", chunk_size=16)
    found = check(store._repr_html_())
    assert "<script>alert(1)</script> & more" in found.text
    assert "100" in found.words
    assert f"{store.num_chunks:,} of 16" in found.words
    assert found.tags.count("rect") == len(found.tips)
    assert sum(int(tip.split("\n")[1].split()[0]) for tip in found.tips) == 100


def test_ids_where_the_tokenizer_cannot_be_loaded(tmp_path: Path) -> None:
    write_dataset(tmp_path, [[[7, 8, 9, EOS], [11, EOS]]])
    assert "7 8 9 256 11 256" in check(TokenStore(tmp_path)._repr_html_()).text


def test_a_missing_index_is_said(tmp_path: Path) -> None:
    write_dataset(tmp_path, [[[7, 8, 9, EOS]]])
    store = TokenStore(tmp_path)
    (tmp_path / "shard-00000.idx").unlink()
    assert "shard-00000.idx" in check(store._repr_html_()).text


def test_no_torch_and_no_pages_before_it_is_shown(tmp_path: Path) -> None:
    write_dataset(tmp_path, [[[7, 8, 9, EOS]]])
    code = (
        "import sys, headrace; store = headrace.TokenStore(sys.argv[1]); print('headrace.pages' in sys.modules);"
        "store._repr_html_(); print('torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


def test_ipython_takes_it(tmp_path: Path) -> None:
    formatters = pytest.importorskip("IPython.core.formatters")
    write_dataset(tmp_path, [[[7, 8, 9, EOS]]])
    shown, _ = formatters.DisplayFormatter().format(TokenStore(tmp_path))
    assert "headrace-view" in shown["text/html"]
