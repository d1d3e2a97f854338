from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.dashboard.downsample import Levels, rounded, thinned, view
from headrace.dashboard.table import Table


def filled(values: list[float], *, extra: dict[str, list[float]] | None = None) -> tuple[Table, Levels]:
    table = Table()
    columns = {"train_loss": np.array(values, np.float32)}
    columns |= {name: np.array(column, np.float32) for name, column in (extra or {}).items()}
    table.append(np.arange(1, len(values) + 1), np.arange(len(values)) * 100, columns)
    return table, Levels(table)


def plain(values: list[float], size: int, first: int = 0) -> list[tuple[float, float, float]]:
    """Mean, least and most of each bucket, the slow way."""
    found = []
    for at in range(first, len(values), size):
        known = [value for value in values[at : at + size] if not math.isnan(value)]
        mean = sum(known) / len(known) if known else math.nan
        found.append((mean, min(known, default=math.nan), max(known, default=math.nan)))
    return found


def triples(found: dict[str, list[Any]]) -> list[tuple[float, float, float]]:
    return list(zip(found["train_loss"], found["train_loss_min"], found["train_loss_max"], strict=True))


def same(found: list[tuple[float, float, float]], wanted: list[tuple[float, float, float]]) -> None:
    assert np.allclose(np.array(found, float), np.array(wanted, float), rtol=1e-5, equal_nan=True)


@given(st.lists(st.floats(-1e6, 1e6, width=32) | st.just(math.nan), min_size=1, max_size=700), st.integers(1, 900))
def test_buckets_hold_mean_least_and_most(values: list[float], points: int) -> None:
    table, levels = filled(values)
    found = view(table, levels, 0, len(values), points)
    size = -(-len(values) // points)
    if size >= 128:
        size = -(-len(values) // (points * 64)) * 64
    assert len(found["steps"]) <= points
    assert found["steps"][-1] == len(values)
    same(triples(found), plain(values, size))


def test_few_rows_are_given_as_they_are() -> None:
    table, levels = filled([3.125, math.nan, 2.5])
    found = view(table, levels, 0, 3, 3)
    assert found["steps"] == [1, 2, 3]
    assert found["train_loss"] == pytest.approx([3.125, math.nan, 2.5], nan_ok=True)
    assert found["train_loss_min"] == found["train_loss"]


def test_a_spike_of_one_row_stays_in_a_view_of_a_million() -> None:
    values = np.full(1_000_000, 2.0)
    values[654_321] = 9.0
    table, levels = filled(values.tolist())
    found = view(table, levels, 0, len(values), 1500)
    assert len(found["steps"]) <= 1500
    assert max(found["train_loss_max"]) == 9.0
    assert max(found["train_loss"]) < 2.1


def test_what_was_reduced_grows_and_is_cut_with_the_table() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=5000).tolist()
    table, levels = Table(), None
    levels = Levels(table)
    for at in range(0, 5000, 77):  # in parts that fit no bucket
        part = np.array(values[at : at + 77], np.float32)
        table.append(np.arange(at, at + len(part)), np.arange(at, at + len(part)), {"train_loss": part})
        view(table, levels, 0, len(table), 10)
    table.drop_after(3009)
    levels.cut()
    table.append(np.arange(3010, 4010), np.arange(3010, 4010), {"train_loss": np.ones(1000, np.float32)})
    values = [*values[:3010], *[1.0] * 1000]
    found = view(table, levels, 0, 4010, 10)
    assert len(found["steps"]) <= 10
    same(triples(found), plain(values, -(-4010 // 640) * 64))


def test_a_column_that_comes_later_is_unknown_before() -> None:
    table = Table()
    levels = Levels(table)
    table.append(np.arange(640), np.arange(640), {"train_loss": np.ones(640, np.float32)})
    view(table, levels, 0, 640, 2)
    more = {"train_loss": np.ones(640, np.float32), "gpu": np.full(640, 0.5, np.float32)}
    table.append(np.arange(640, 1280), np.arange(640, 1280), more)
    assert view(table, levels, 0, 1280, 4)["gpu"] == pytest.approx([math.nan, math.nan, 0.5, 0.5], nan_ok=True)


def test_left_out_steps_are_counted_and_not_averaged() -> None:
    table, levels = filled([1.0] * 10, extra={"skipped": [0, 0, 1, 0, 0, 0, 0, 2, 0, 0]})
    assert view(table, levels, 0, 10, 2)["skipped"] == [1, 2]


def test_a_part_is_as_exact_as_the_whole() -> None:
    values = np.random.default_rng(1).normal(size=100_000).tolist()
    table, levels = filled(values)
    near = view(table, levels, 50_000, 50_100, 200)
    assert near["steps"] == list(range(50_001, 50_101))
    assert near["train_loss"] == pytest.approx(values[50_000:50_100], rel=1e-6)
    middle = view(table, levels, 1000, 91_000, 100)
    assert len(middle["steps"]) <= 100
    first = 1000 // 64 * 64
    size = -(-(91_000 - first) // (100 * 64)) * 64
    same(triples(middle), plain(values[:91_000], size, first))


def test_seven_digits_are_kept() -> None:
    assert rounded(np.array([0.1, 3e-4, 123456789.0, 0.0, -2.5], np.float32)) == [0.1, 3e-4, 123456800.0, 0.0, -2.5]
    assert np.isnan(rounded(np.array([math.nan], np.float32))).all()


def test_a_sparkline_leaves_out_what_is_no_number() -> None:
    assert thinned(np.array([1.0, math.nan, 3.0]), 60) == [1.0, 3.0]
    assert thinned(np.arange(600.0), 60)[:2] == [4.5, 14.5]
    assert len(thinned(np.arange(601.0), 60)) <= 60
