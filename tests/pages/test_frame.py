"""A page is whole and closed; a piece for a notebook keeps its style to itself."""

from __future__ import annotations

import re

from conftest_pages import HOSTILE, check
from headrace.pages.frame import document
from headrace.pages.notebook import STYLE, keys, scoped, view
from headrace.pages.style import BASE, CHARTS, DARK, LIGHT, PHASE_COLOURS, TOKENS, phase_colour


def test_a_page_forbids_script_and_everything_from_elsewhere() -> None:
    html = document(HOSTILE, "<p>body</p>")
    assert "alert(1)" in check(html).text
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy is not None
    assert policy[1] == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def names(css: str) -> set[str]:
    return set(re.findall(r"(--[\w-]+):", css))


def test_light_and_dark_name_the_same_colours() -> None:
    assert names(LIGHT) == names(DARK)
    assert "prefers-color-scheme:dark" in TOKENS
    assert ":root[data-theme=dark]" in TOKENS
    assert "@media print" in TOKENS


def test_every_colour_that_is_used_is_there() -> None:
    used = set(re.findall(r"var\((--[\w-]+)", BASE + CHARTS)) - {"--hr-high"}
    assert used <= names(TOKENS)


def in_full(colour: str) -> str:
    return colour if len(colour) == 7 else "#" + "".join(digit * 2 for digit in colour[1:])


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_can_be_read_in_both_themes() -> None:
    """WCAG AA for text: 4.5 to 1, on the paper and on a card."""
    for theme in (LIGHT, DARK):
        full = {
            name: v if len(v) == 7 else "#" + "".join(c * 2 for c in v[1:])
            for name, v in re.findall(r"--(\w+):(#\w+)", theme)
        }
        for ink in ("ink", "dim", "good", "warn", "bad", "accent"):
            for ground in ("paper", "card"):
                assert contrast(full[ink], full[ground]) >= 4.5, (ink, ground, theme)


def test_phases_can_be_told_from_the_paper() -> None:
    for theme in (LIGHT, DARK):
        paper = in_full(re.findall(r"--paper:(#\w+)", theme)[0])
        assert min(contrast(colour, paper) for colour in PHASE_COLOURS.values()) > 1.6


def test_phases_have_a_colour_whatever_they_are_called() -> None:
    assert phase_colour("sync") == PHASE_COLOURS["host_sync"]
    assert phase_colour("forward+backward") == PHASE_COLOURS["forward"]
    assert phase_colour(HOSTILE) == PHASE_COLOURS["python"]


def test_every_rule_is_scoped() -> None:
    assert scoped("a,b c{x:1}\n&{y:2}", ".s") == ".s a,.s b c{x:1}.s{y:2}"
    selectors = [part for rule in re.findall(r"([^{}]+)\{", STYLE) for part in rule.split(",")]
    assert len(selectors) > 30
    assert all(part.strip().startswith(".headrace-view") for part in selectors)
    assert "@" not in STYLE


def test_a_view_is_whole() -> None:
    found = check(view(HOSTILE, keys([(HOSTILE, HOSTILE)]), HOSTILE))
    assert found.text.count("<script>") == 4
