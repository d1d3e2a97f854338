from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.sources import ReadOptions, Source, hub, open_source, read_spans
from headrace.sources.wikitext import HEADING

ONE = ["", " = One = \n", "", " Text of one .\n", " = = Section = = \n", " more\n"]
TWO = ["", " = Two : E = mc2 = \n", " two\n"]
ROWS = [*ONE, *TWO] * 40
ARTICLES = [b" = One = \n Text of one .\n = = Section = = \n more\n", b" = Two : E = mc2 = \n two\n"] * 40


@pytest.mark.parametrize(
    ("row", "heading"),
    [
        (b" = One = \n", True),
        (b" = One = ", True),
        (b" = A = B = \n", True),
        (b" = = Section = = \n", False),
        (b" = = = Deep = = = \n", False),
        (b" text = One = \n", False),
        (b" = One \n", False),
        (b"", False),
    ],
)
def test_headings(row, heading):
    assert bool(HEADING.fullmatch(row)) is heading


def test_articles_run_on_across_row_groups_and_files(tmp_path, monkeypatch):
    for number, rows in enumerate([ROWS[:100], ROWS[100:]]):
        pq.write_table(pa.table({"text": rows}), tmp_path / f"train-{number}.parquet", row_group_size=7)
    local = open_source(tmp_path)
    source = Source("wikitext-103", local.files, ReadOptions(join="wikitext"))
    assert source.sequential
    spans = source.spans(1)
    assert len(spans) > 20
    batches = list(read_spans(spans, source.options, batch_documents=10))
    assert [text for batch in batches for text in batch.texts] == ARTICLES
    assert sum(batch.input_bytes for batch in batches) == source.total_bytes


def test_the_catalogue_name_asks_for_the_join(monkeypatch):
    monkeypatch.setattr(hub, "list_tree", lambda *_: ("c0ffee", [("wikitext-103-raw-v1/train-0.parquet", 5)]))
    assert open_source("wikitext-103").options.join == "wikitext"
