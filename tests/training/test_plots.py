"""The picture of a run: what is drawn, and that it is a picture."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from conftest_events import a_run, run_event, step_event
from headrace.errors import MissingDependency
from headrace.training.history import History
from headrace.training.plots import curves_figure, draw_curves, smoothed


def history(**more: Any) -> dict[str, Any]:
    told = History.from_events(a_run(1000)).as_dict()
    return {**told, "run": {**told["run"], **more}}


def axes_of(figure: Any) -> dict[str, Any]:
    return {axes.get_title(loc="left"): axes for axes in figure.axes}


def test_the_png_is_whole(tmp_path: Path) -> None:
    draw_curves(history(), tmp_path / "curves.png")
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.size == (1540, 946)
        colours = picture.convert("RGB").getcolors(1 << 24)
        assert len(colours) > 50
    assert [path.name for path in tmp_path.iterdir()] == ["curves.png"]


def test_every_curve_has_its_place() -> None:
    axes = axes_of(curves_figure(history()))
    assert set(axes) >= {
        "Loss",
        "Learning rate",
        "Tokens per second",
        "Where the time of a step goes",
        "Gradient norm before clipping",
    }
    raw, smooth, val = axes["Loss"].get_lines()
    assert list(raw.get_xdata()) == list(range(10, 1001, 10))
    assert list(raw.get_ydata()) == history()["train_loss"]
    assert len(smooth.get_xdata()) == 100
    assert list(val.get_xdata()) == list(range(100, 1001, 100))
    assert raw.get_alpha() < 0.5
    assert len(axes["Where the time of a step goes"].collections) == 9


def test_the_title_says_model_and_data() -> None:
    assert curves_figure(history()).get_suptitle() == "transformer small, 25.3 M parameters, on web, code"


def test_the_bigram_line_is_drawn_where_there_is_one() -> None:
    lines = axes_of(curves_figure(history(bigram_loss=5.25)))["Loss"].get_lines()
    assert len(lines) == 4
    assert list(lines[-1].get_ydata()) == [5.25, 5.25]
    assert "5.250" in lines[-1].get_label()


def test_the_start_does_not_press_the_rest_flat() -> None:
    axes = axes_of(curves_figure(history()))["Loss"]
    low, high = axes.get_ylim()
    assert low < 3.0
    assert high < history()["train_loss"][0]


def test_data_wait_is_in_the_legend_even_when_there_is_none() -> None:
    told = history()
    told["shares"]["data_wait"] = [0.0] * 100
    texts = [text.get_text() for axes in curves_figure(told).axes for text in _legend(axes)]
    assert "data wait 0.0%" in texts
    assert "backward 50.0%" in texts


def test_a_long_interval_counts_for_its_length() -> None:
    """One second of forward, then nine of evaluation: 10% and 90%, not half and half."""
    events = [
        run_event(),
        step_event(10, seconds=1.0, spans={"forward": 1.0, "evaluation": 0.0}),
        step_event(20, seconds=9.0, spans={"forward": 0.0, "evaluation": 9.0}),
    ]
    figure = curves_figure(History.from_events(events).as_dict())
    texts = [text.get_text() for axes in figure.axes for text in _legend(axes)]
    assert "forward 10.0%" in texts
    assert "evaluation 90.0%" in texts


def _legend(axes: Any) -> list[Any]:
    return axes.get_legend().get_texts() if axes.get_legend() else []


@pytest.mark.parametrize(
    "events",
    [
        [],
        [run_event()],
        [run_event(), step_event(10)],
        [run_event(), step_event(10, loss=math.nan, grad_norm=math.nan, spans={}, mfu=None)],
        [{"kind": "run", "step": 0}, step_event(10, tokens_per_second=None), step_event(20)],
    ],
)
def test_little_or_nothing_to_draw_is_no_error(events: list[dict[str, Any]], tmp_path: Path) -> None:
    draw_curves(History.from_events(events).as_dict(), tmp_path / "curves.png")
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.size == (1540, 946)


def test_smoothing_keeps_a_line_and_steps_over_gaps() -> None:
    line = np.arange(100.0)
    assert smoothed(line)[10:-10] == pytest.approx(line[10:-10])
    line[50] = np.nan
    assert np.isfinite(smoothed(line)).all()
    assert np.isnan(smoothed(np.full(5, np.nan))).all()


def test_a_missing_matplotlib_names_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependency, match=r"matplotlib.*headrace\[train\]"):
        draw_curves(history(), tmp_path / "curves.png")
