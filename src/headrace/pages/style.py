"""The colours and the type of every page, as CSS. The dashboard serves the same strings as a file."""

from __future__ import annotations

# Work that trains is cool, what keeps it waiting is warm, the rest is grey: one look says whether a step is well spent.
# Middle tones, so that they stand on white and on black.
PHASE_COLOURS = {
    "tokenization": "#d6455d",
    "data_wait": "#ee8f35",
    "host_to_device": "#e0bd45",
    "forward": "#3f86cc",
    "backward": "#2b9f9a",
    "optimizer": "#6aa84f",
    "host_sync": "#c9509f",
    "evaluation": "#8b71d3",
    "checkpoint": "#a8836a",
    "logging": "#7b889e",
    "python": "#a7b1bf",
}
# The names that spans of a training loop have for two of them.
PHASE_COLOURS |= {"sync": PHASE_COLOURS["host_sync"], "other": PHASE_COLOURS["python"]}
SERIES = ("#3f86cc", "#e2683c", "#2b9f9a", "#8b71d3", "#c9509f", "#6aa84f", "#b88a1e", "#7b889e")  # curves, in order

LIGHT = """--paper:#fff;--card:#f6f7f9;--raised:#fff;--ink:#18202b;--dim:#5b6675;--faint:#8b95a3;--line:#dfe3e9;
--grid:#e8ebef;--accent:#2469b3;--good:#1a7341;--warn:#8f5a00;--bad:#b3261e;
--hover:rgb(20 40 70/.07);color-scheme:light;"""
DARK = """--paper:#12161c;--card:#1a2028;--raised:#212833;--ink:#e4e8ee;--dim:#9ba6b5;--faint:#727e8e;--line:#323b47;
--grid:#29313b;--accent:#6db1f5;--good:#76d597;--warn:#f0b45c;--bad:#ff8d84;
--hover:rgb(200 220 255/.1);color-scheme:dark;"""
COLOURS = "".join(f"--phase-{name}:{colour};" for name, colour in PHASE_COLOURS.items()) + "".join(
    f"--series-{place}:{colour};" for place, colour in enumerate(SERIES, 1)
)
# Custom properties; [data-theme] on the root element overrules the system. Paper is light whatever the screen was.
TOKENS = (
    f":root{{{LIGHT}{COLOURS}"
    "--sans:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;"
    "--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}\n"
    f"@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{DARK}}}}}\n"
    f":root[data-theme=dark]{{{DARK}}}\n"
    f"@media print{{:root,:root:not([data-theme=light]),:root[data-theme=dark]{{{LIGHT}}}}}\n"
)

BASE = """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.55 var(--sans);font-variant-numeric:tabular-nums}
main{max-width:68rem;margin:auto;padding:2rem 1.5rem 5rem}
h1{font-size:1.5rem;line-height:1.25;font-weight:650;letter-spacing:-.01em;margin:0;overflow-wrap:anywhere}
h2{font-size:1.1rem;font-weight:650;margin:2.6rem 0 .8rem}
h3{font-size:.95rem;font-weight:600;margin:0 0 .3rem}
p{margin:.4rem 0;max-width:46rem}
a{color:var(--accent)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
code,pre{font:.84rem/1.5 var(--mono)}
code{overflow-wrap:anywhere}
pre{margin:.5rem 0;padding:.7rem .9rem;background:var(--card);border-radius:6px;overflow-x:auto;tab-size:4}
pre.wrap{white-space:pre-wrap;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}
th{font-size:.8rem;font-weight:500;color:var(--dim);text-align:left;padding:.3rem .8rem .3rem 0;vertical-align:bottom}
td{padding:.34rem .8rem .34rem 0;border-top:1px solid var(--line);vertical-align:top}
th:last-child,td:last-child{padding-right:0}
th.n,td.n{text-align:right;white-space:nowrap}
td.words{overflow-wrap:anywhere}
.scroll{overflow-x:auto}
.dim{color:var(--dim)}.bad{color:var(--bad)}.good{color:var(--good)}.warn{color:var(--warn)}
.lead{font-size:1.05rem;margin:.8rem 0}
.small{font-size:.85rem}
.card{background:var(--card);border-radius:8px;padding:.9rem 1.1rem;margin:.7rem 0}
.pill{display:inline-block;padding:.05rem .6rem;border:1px solid currentColor;border-radius:1rem;font-size:.8rem;
font-weight:500;vertical-align:.12em;white-space:nowrap}
.keys{display:grid;grid-template-columns:repeat(auto-fill,minmax(10.2rem,1fr));gap:1.1rem 1.4rem;margin:1.4rem 0}
.keys div{min-width:0}
.keys dt,.keys .name{font-size:.8rem;color:var(--dim)}
.keys dd,.keys .value{margin:0;font-size:1.3rem;line-height:1.3;font-weight:600;letter-spacing:-.01em;
overflow-wrap:anywhere}
.keys .note{font-size:.8rem;color:var(--dim)}
dl.keys{margin:1.4rem 0}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1.6rem 2rem}
.pair>*{min-width:0}
details{margin:1rem 0}summary{cursor:pointer;font-weight:600}
@media(max-width:40rem){main{padding:1.2rem .9rem 3rem}h1{font-size:1.25rem}h2{margin-top:2rem}
.keys{grid-template-columns:repeat(auto-fill,minmax(6.6rem,1fr));gap:.9rem 1rem}.keys dd,.keys .value{font-size:1.12rem}
td.wide,th.wide{display:none}}
@media print{body{font-size:11pt}main{max-width:none;padding:0}figure,.card,tr,.keys{break-inside:avoid}
h2,h3{break-after:avoid}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}pre{white-space:pre-wrap}}
"""

# Every name begins with hr-, so that the same rules can live in somebody else's page.
CHARTS = """
.hr-chart{margin:0;min-width:0;font-variant-numeric:tabular-nums}
.hr-chart figcaption{display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 1rem;font-size:.92rem;
font-weight:600;margin:0 0 .35rem}
.hr-chart .hr-note{font-weight:400;color:var(--dim)}
.hr-frame{display:grid;grid-template-columns:auto 1fr;grid-template-rows:auto 1.35rem;column-gap:.5rem;font-size:.75rem;
line-height:1;color:var(--dim)}
.hr-ys{position:relative;display:flex;flex-direction:column}
.hr-ys span{position:absolute;right:0;transform:translateY(-50%);white-space:nowrap}
.hr-ys b{visibility:hidden;height:0;font-weight:400;white-space:nowrap}
.hr-plot{position:relative;height:var(--hr-high,13rem)}
.hr-plot>svg{position:absolute;inset:0;width:100%;height:100%;display:block;overflow:visible;
border-bottom:1px solid var(--faint)}
.hr-plot svg svg{overflow:hidden}
.hr-plot path{vector-effect:non-scaling-stroke;stroke-linejoin:round}
.hr-plot .hr-grid{stroke:var(--grid);stroke-width:1;fill:none}
.hr-xs{grid-column:2;position:relative}
.hr-xs span{position:absolute;top:.4rem;transform:translateX(-50%);white-space:nowrap}
.hr-xs span.hr-first{transform:none}.hr-xs span.hr-last{transform:translateX(-100%)}
.hr-hit{position:absolute;top:0;bottom:0}
.hr-hit:hover{background:var(--hover)}
.hr-hit:hover::after{content:attr(data-tip);position:absolute;z-index:3;top:.4rem;left:calc(50% + .5rem);
white-space:pre;padding:.4rem .6rem;border:1px solid var(--line);border-radius:5px;background:var(--raised,Canvas);
color:var(--ink,CanvasText);
font-size:.75rem;line-height:1.5;pointer-events:none}
.hr-hit.hr-right:hover::after{left:auto;right:calc(50% + .5rem)}
.hr-legend{display:flex;flex-wrap:wrap;gap:.15rem 1rem;font-size:.8rem;color:var(--dim);margin:.45rem 0 0}
.hr-legend span{white-space:nowrap}
.hr-legend i{display:inline-block;width:.7rem;height:.7rem;margin-right:.35rem;border-radius:2px;vertical-align:-.04em}
.hr-legend i.hr-line{height:0;width:.95rem;border-top:2.5px solid;border-radius:0;vertical-align:.24em}
.hr-legend i.hr-dots{border-radius:50%;width:.6rem;height:.6rem}
.hr-legend b{font-weight:600;color:var(--ink)}
.hr-bars{display:grid;grid-template-columns:auto 1fr auto;gap:.3rem .8rem;align-items:center;font-size:.88rem;margin:0}
.hr-bars div{display:contents}
.hr-bars .hr-track{display:block;height:.75rem}
.hr-bars .hr-track i{display:block;height:100%;min-width:1px;border-radius:2px}
.hr-bars b{font-weight:500;text-align:right;white-space:nowrap}
.hr-spark{display:inline-block;width:6rem;height:1.4rem;vertical-align:middle;overflow:visible}
.hr-spark path{fill:none;stroke-width:1.5;vector-effect:non-scaling-stroke;stroke-linejoin:round}
.hr-share{display:flex;height:1.1rem;border-radius:3px;overflow:hidden}
.hr-share i{display:block;min-width:0}
"""


def phase_colour(name: str) -> str:
    """Grey for a phase that has no colour; of phases that are shown as one, the first decides."""
    return PHASE_COLOURS.get(name.split("+")[0], PHASE_COLOURS["python"])
