"""Charts are where the numbers are, whole HTML, and no name in them can become markup."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest_pages import HOSTILE, check
from headrace.pages.axes import Scale
from headrace.pages.charts import Curve, bars, columns, lines, shares, sparkline, stacked
from headrace.pages.style import PHASE_COLOURS, SERIES

VALUES = st.lists(st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)), min_size=1, max_size=30)


def curve(ys: list[float | None], **more: object) -> Curve:
    return Curve(name="loss", xs=list(range(0, 10 * len(ys), 10)), ys=ys, **more)  # type: ignore[arg-type]


def paths(html: str) -> list[str]:
    return re.findall(r'<path d="([^"]*)"', html)


def test_a_line_goes_through_its_points() -> None:
    html = lines([curve([0.0, 10.0, 5.0])], title="Loss", scale=Scale(0, 10))
    assert paths(html)[0] == "M0.0,1000.0L500.0,0.0L1000.0,500.0"


def test_axes_have_numbers_in_their_places() -> None:
    html = lines([curve([0.0, 10.0, 5.0])], title="Loss", scale=Scale(0, 10))
    assert re.findall(r'<span style="top:([\d.]+)%">([^<]+)<', html) == [
        ("100.00", "0"),
        ("80.00", "2"),
        ("60.00", "4"),
        ("40.00", "6"),
        ("20.00", "8"),
        ("0.00", "10"),
    ]
    assert re.findall(r'style="left:([\d.]+)%">(\d+)<', html) == [
        ("0.00", "0"),
        ("25.00", "5"),
        ("50.00", "10"),
        ("75.00", "15"),
        ("100.00", "20"),
    ]


def test_no_text_is_inside_the_stretched_drawing() -> None:
    html = lines([curve([1.0, 2.0])], title="Loss")
    assert "<text" not in html
    assert 'preserveAspectRatio="none"' in html


def test_a_gap_is_a_gap() -> None:
    ys = [1.0, 2.0, None, 3.0, 4.0]
    assert paths(lines([curve(ys)]))[0].count("M") == 2


def test_a_lone_point_is_a_dot() -> None:
    html = lines([curve([*([1.0] * 20), None, 3.0, None, *([1.0] * 20)])])
    assert paths(html)[-1].count("h.01") == 1


def test_dots_out_of_the_scale_are_left_out() -> None:
    dots = Curve(name="validation", xs=[0, 10], ys=[5.0, 500.0], look="dots")
    html = lines([curve([1.0] * 20), dots], scale=Scale(0, 10), x_scale=Scale(0, 100))
    assert paths(html)[-1].count("h.01") == 1


def test_log_scale() -> None:
    html = lines([curve([1.0, 10.0, 100.0])], log=True)
    ys = [float(y) for y in re.findall(r",([\d.]+)", paths(html)[0])]
    assert ys[0] - ys[1] == pytest.approx(ys[1] - ys[2], abs=0.2)


def test_log_scale_survives_what_it_cannot_show() -> None:
    check(lines([curve([1.0, 0.0, -5.0])], log=True, scale=Scale(0.1, 10, True)))


def test_a_band_keeps_its_spikes_however_many_points_there_are() -> None:
    low, high = [1.0] * 10_000, [2.0] * 10_000
    high[7_777] = 9.0
    band = curve([None] * 10_000, look="band", low=low, high=high)
    html = lines([curve([1.5] * 10_000), band], scale=Scale(0, 10))
    area = next(path for path in paths(html) if path.endswith("Z"))
    assert ",100.0" in area
    assert len(html) < 60_000


def test_strips_say_the_values() -> None:
    dots = Curve(name="validation", xs=[10], ys=[7.0], look="dots")
    tips = check(lines([curve([1.0, 2.0, None]), dots], title="Loss")).tips
    assert tips == ["step 0\nloss  1", "step 10\nloss  2\nvalidation  7", "step 20"]


def test_strips_cover_the_plot_and_are_few() -> None:
    html = lines([curve([float(at) for at in range(5000)])])
    places = [(float(a), float(b)) for a, b in re.findall(r'style="left:([\d.]+)%;width:([\d.]+)%"', html)]
    assert len(places) <= 82
    assert sum(width for _, width in places) == pytest.approx(100, abs=1)


def test_no_chart_of_nothing() -> None:
    band = curve([None], look="band", low=[1.0], high=[2.0])
    nothing = (
        lines([]),
        lines([curve([None, math.nan])]),
        lines([band]),
        stacked([], {}),
        sparkline([]),
        sparkline([None, 1.0]),
        bars([]),
        columns([], []),
        columns([0], [""]),
        shares({"forward": 0.0}),
    )
    assert set(nothing) == {""}


@given(VALUES, st.booleans(), st.booleans())
def test_any_values_make_a_whole_chart(ys: list[float | None], log: bool, zero: bool) -> None:
    html = lines([curve(ys), curve(ys, look="dots")], log=log, zero=zero) + sparkline(ys)
    check(html)
    assert not re.search(r"\b(nan|inf)\b", html)


@given(VALUES)
def test_any_layers_make_a_whole_chart(ys: list[float | None]) -> None:
    check(stacked(list(range(len(ys))), {"forward": ys, "other": ys}))


def test_layers_stand_on_each_other() -> None:
    html = stacked([1, 2], {"forward": [0.25, 0.5], "backward": [0.75, 0.5]}, top=1.0)
    found = re.findall(r'data-name="(\w+)" d="([^"]+)" fill="([^"]+)"', html)
    assert found == [
        ("forward", "M0.0,750.0L1000.0,500.0L1000.0,1000.0L0.0,1000.0Z", PHASE_COLOURS["forward"]),
        ("backward", "M0.0,0.0L1000.0,0.0L1000.0,500.0L0.0,750.0Z", PHASE_COLOURS["backward"]),
    ]


def test_many_layers_points_become_means() -> None:
    html = stacked(list(range(96_000)), {"forward": [0.0, 1.0] * 48_000}, top=1.0)
    assert len(html) < 60_000
    assert ",500.0L" in html


def test_one_point_is_a_flat_stretch() -> None:
    assert 'd="M0.0,500.0L1000.0,500.0' in stacked([10], {"forward": [0.5]}, top=1.0)


def test_hostile_names_stay_text() -> None:
    hostile = Curve(name=HOSTILE, xs=[1, 2], ys=[1.0, 2.0], colour=HOSTILE)
    html = (
        lines([hostile, hostile], title=HOSTILE, note=HOSTILE, x_name=HOSTILE)
        + stacked([1, 2], {HOSTILE: [1.0, 2.0]}, title=HOSTILE, note=HOSTILE, labels={HOSTILE: HOSTILE})
        + bars([(HOSTILE, 1.0, HOSTILE)])
        + columns([1, 2], [HOSTILE, HOSTILE], title=HOSTILE, note=HOSTILE)
        + shares({HOSTILE: 1.0})
        + sparkline([1.0, 2.0], colour=HOSTILE)
    )
    assert "<script>alert(1)</script>" in check(html).text


def test_bars_are_as_long_as_their_values() -> None:
    html = bars([("a", 2.0, "two"), ("b", 1.0, "one"), ("c", -1.0, "none")], colours={"b": "#123456"})
    assert re.findall(r"width:([\d.]+)%;background:(#\w+)", html) == [
        ("100.0", SERIES[0]),
        ("50.0", "#123456"),
        ("0.0", SERIES[0]),
    ]
