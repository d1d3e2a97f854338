"""How everything on a terminal looks: styles by what they mean, and phases in the colours of the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.pages.style import PHASE_COLOURS, SERIES

if TYPE_CHECKING:
    from rich.theme import Theme

# Words in the terminal's own palette, which its owner has made legible; curves and phases as on the pages.
STYLES = {
    "title": "bold",
    "label": "dim",  # what a value is
    "number": "bold",  # the value that is looked for first
    "good": "green",
    "bad": "red",
    "warn": "yellow",
    "done": "bold green",
    "failed": "bold red",
    "rate": "bold green",
    "place": "cyan",  # a line of code
    "curve": SERIES[0],
    "loss": f"bold {SERIES[0]}",
    "mark": f"bold {SERIES[1]}",
    "rule.line": "cyan",
    "bar.complete": SERIES[0],
    "bar.finished": SERIES[0],
    "progress.download": "dim",
    "progress.remaining": "bold",
}
# The letter that stands for a phase where there are no colours; the order is that of a step.
LETTERS = {
    "tokenization": "t",
    "data_wait": "w",
    "host_to_device": "h",
    "forward": "f",
    "backward": "b",
    "optimizer": "o",
    "sync": "s",
    "host_sync": "s",
    "evaluation": "e",
    "checkpoint": "c",
    "logging": "l",
    "python": ".",
    "other": ".",
}
# A stage of preparing has the colour of the phase that it is like.
STAGES = {"read": "data_wait", "tokenize": "tokenization", "verify": "evaluation", "write": "checkpoint"}


def terminal_theme() -> Theme:
    """Names such as `good` and `phase.forward` for the styles of a Console. Rich lowers colours to what it finds."""
    from rich.theme import Theme

    return Theme({**STYLES, **{f"phase.{name}": colour for name, colour in PHASE_COLOURS.items()}})


def phase_style(name: str) -> str:
    return f"phase.{name}" if name in PHASE_COLOURS else "label"


def phase_letter(name: str) -> str:
    return LETTERS.get(name, "?")


def in_order(names: list[str]) -> list[str]:
    """Known phases in the order of a step, then the others."""
    return [name for name in LETTERS if name in names] + [name for name in names if name not in LETTERS]
