"""A piece of a page for somebody else's: in a notebook it takes the colours around it and gives none away."""

from __future__ import annotations

import re

from headrace.pages.style import CHARTS, COLOURS
from headrace.pages.text import text

SCOPE = ".headrace-view"
# A notebook's theme need not be the system's, so nothing here asks for light or dark: all follows the text's colour.
OWN = """
&{--ink:currentColor;--dim:color-mix(in srgb,currentColor 68%,transparent);
--line:color-mix(in srgb,currentColor 20%,transparent);
--faint:color-mix(in srgb,currentColor 45%,transparent);--grid:color-mix(in srgb,currentColor 11%,transparent);
--hover:color-mix(in srgb,currentColor 9%,transparent);
max-width:60rem;font-variant-numeric:tabular-nums;line-height:1.5}
.hv-title{font-weight:650;font-size:1.08em;overflow-wrap:anywhere}
.hv-dim{opacity:.7}
.hv-keys{display:flex;flex-wrap:wrap;gap:.5em 1.8em;margin:.6em 0 .9em}
.hv-keys div{min-width:0}
.hv-keys span{display:block;font-size:.82em;opacity:.7}
.hv-keys b{font-size:1.12em;font-weight:600}
.hv-pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,20rem),1fr));gap:1em 1.6em}
.hv-lead{margin:.5em 0 .7em}
.hv-small{font-size:.86em}
.hv-fix{margin:.9em 0 0}
.hv-narrow .hr-share{margin-bottom:.6em}
.hv-narrow{max-width:32rem}
.hv-ends{display:flex;justify-content:space-between;font-size:.8em;margin:.2em 0 .6em}
.hv-text{white-space:pre-wrap;overflow-wrap:anywhere;font-family:ui-monospace,monospace;font-size:.86em;line-height:1.45;
border-left:3px solid var(--line);padding:.1em 0 .1em .8em;margin:.5em 0;max-height:14em;overflow:auto}
.hr-hit:hover::after{background:Canvas;color:CanvasText}
"""


def view(title: str, body: str, note: str = "") -> str:
    """`body` is markup, `title` and `note` are text."""
    return (
        f'<div class="{SCOPE[1:]}"><style>{STYLE}</style><div class="hv-title">{text(title)}</div>'
        f'<div class="hv-dim">{text(note)}</div>{body}</div>'
    )


def keys(rows: list[tuple[str, str]]) -> str:
    return (
        f'<div class="hv-keys">{"".join(f"<div><span>{text(n)}</span><b>{text(v)}</b></div>" for n, v in rows)}</div>'
    )


def scoped(css: str, scope: str = SCOPE) -> str:
    """Every rule below `scope`, so that it changes nothing outside. The rules are ours: no @media, no nesting."""

    def below(rule: re.Match[str]) -> str:
        places = (place.strip() for place in rule[1].split(","))
        return ",".join(scope if place == "&" else f"{scope} {place}" for place in places) + "{"

    return re.sub(r"([^{}]+)\{", below, css)


STYLE = scoped(f"&{{{COLOURS}}}{CHARTS}{OWN}")
