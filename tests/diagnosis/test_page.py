"""One HTML file: whole, well-formed, from nowhere else, and no text of a report can become markup."""

from __future__ import annotations

import re
from typing import Any

import pytest

from conftest_pages import HOSTILE, check
from headrace.diagnosis.page import page
from headrace.diagnosis.report import PHASES, Fix, Report, Site, phases_from
from headrace.pages.style import PHASE_COLOURS


def report(text: str = "train.py", **facts: Any) -> Report:
    fix = Fix(
        rule="sync_in_loop",
        title=f"Title {text}",
        evidence=f"Evidence {text}",
        advice=f"Advice {text}\nMore {text}",
        phase="host_sync",
        site=Site(file=f"/home/{text}", line=3, code=f"code {text}", what=text, calls=2, ms=5),
        saves_ms=5,
        speedup=2.0,
    )
    return Report(
        kind="run",
        subject=text,
        verdict=f"Verdict {text}",
        steps=1234,
        left_out=5,
        step_ms=10,
        phases=phases_from({"host_sync": 5.0, "forward": 2.0, "backward": 3.0}),
        fixes=[fix],
        missing=[f"Missing {text}"],
        facts=facts,
    )


TIMELINE = {"steps": [10, 20, 30], "phases": {"forward": [4.0, 5.0, 4.0], "host_sync": [1.0, 0.0, 6.0]}}
FLAME = {"main;step;forward": 60, "main;step;loss.item": 30, "main;load": 9, "main;load;tiny": 0.01, "other": 1}


def test_a_page_says_what_the_report_says() -> None:
    words = check(page(report(mfu=0.3125, steps_skipped=0))).text
    for said in ("Title", "Evidence", "Advice", "More", "Verdict", "Missing", "code", "2.0x", "1,234 steps", "0.3125"):
        assert said in words, said
    assert "└─ forward+backward" in words or "├─ forward+backward" in words


def test_a_page_needs_nothing_else() -> None:
    html = page(report(timeline=TIMELINE, flame=FLAME))
    check(html)
    assert "default-src 'none'" in html
    assert "prefers-color-scheme:dark" in html
    assert "width=device-width" in html


def test_hostile_text_stays_text() -> None:
    phases = {"forward": [1.0, 2.0], HOSTILE: [1.0, 2.0]}
    facts = {
        HOSTILE: HOSTILE,
        "timeline": {"steps": [1, 2], "phases": phases},
        "flame": {f"{HOSTILE};{HOSTILE}": 5},
    }
    html = page(report(HOSTILE, **facts))
    assert "<script>alert(1)</script>" in check(html).text
    assert HOSTILE not in html


def test_timeline_is_drawn_to_the_top() -> None:
    html = page(report(timeline=TIMELINE))
    assert check(html).tags.count("figure") == 2
    assert 'data-tip="step 10\n' in html
    assert 'data-tip="step 30\n' in html
    shares = re.findall(r'<path data-name="host_sync" d="M([^"]+)Z"', html)[0].split("L")
    assert shares == ["0.0,0.0", "500.0,0.0", "1000.0,0.0", "1000.0,600.0", "500.0,0.0", "0.0,200.0"]


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        {"steps": [1, 2]},
        {"steps": [1], "phases": {"forward": [1.0]}},
        {"steps": [1, 2], "phases": {"forward": [1.0]}},
        {"steps": [1, 2], "phases": {"forward": [1.0, None]}},
        {"steps": [1, 2], "phases": {"forward": [0.0, 0.0]}},
        {"steps": [1, 2], "phases": {"unknown": [1.0, 1.0]}},
        {"steps": [HOSTILE, HOSTILE], "phases": {"forward": [1.0, 1.0]}},
    ],
)
def test_no_timeline_of_what_is_none(broken: Any) -> None:
    html = page(report(timeline=broken))
    assert "svg" not in check(html).tags


def test_flame_is_as_wide_as_its_samples() -> None:
    html = page(report(flame=FLAME))
    check(html)
    boxes = dict(re.findall(r'style="left:[\d.]+%;width:([\d.]+)%;top:\d+px" title="([^"]+?) \(', html))
    widths = {name: float(width) for width, name in boxes.items()}
    assert widths["main"] == pytest.approx(98.99, abs=0.02)
    assert widths["forward"] == pytest.approx(59.99, abs=0.02)
    assert "tiny" not in widths


@pytest.mark.parametrize("broken", [None, {}, [], {"a": 0}, {"a": "x"}])
def test_no_flame_of_what_is_none(broken: Any) -> None:
    assert "The Python part" not in page(report(flame=broken))


def test_deep_stacks_are_cut() -> None:
    html = page(report(flame={";".join(["f"] * 5000): 10}))
    assert html.count('title="f (') == 48


def test_a_bare_report_makes_a_page() -> None:
    check(page(Report(kind="data", subject="data/web", verdict="Fast enough.")))


def test_every_phase_has_its_colour() -> None:
    assert set(PHASES) <= PHASE_COLOURS.keys()
    assert len({PHASE_COLOURS[name] for name in PHASES}) == len(PHASES)
    assert f"background:{PHASE_COLOURS['host_sync']}" in page(report())


def test_a_notebook_shows_a_report() -> None:
    found = check(report(HOSTILE)._repr_html_())
    for said in ("Title", "Evidence", "Advice", "More", "Verdict", "Missing", "2.0x", "forward+backward"):
        assert said in found.text, said
    check(Report(kind="data", subject="data/web", verdict="Fast enough.")._repr_html_())
