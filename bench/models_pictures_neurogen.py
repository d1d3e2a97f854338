"""neurogen.png: the brain, one of its modules, and what the neurons of a column really do on random tokens."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from models_pictures_sheet import PACE, READ, WRITE, Sheet, new_sheet
from numpy.typing import NDArray

from headrace.models.neurogen import NeuroGen, NeuroGenConfig, State
from headrace.training.plots import BLUE, INK, ORANGE, QUIET

CONFIG = NeuroGenConfig(vocab_size=256, context=256, width=128, modules=1, columns=4)
TOKENS, NEURON, SHOWN, SEED = 160, 0, 20, 0
STRENGTH, FADE, LEAK = 8.0, 24.0, 3.0  # of the neurons shown: how far a threshold rises, and two times in tokens
BRAIN, LEFT = 1.95, 1.25  # the middle of the boxes and their edge
OUTPUTS = ((5.95, 0.35), (5.16, 0.6), (3.91, 0.85))  # where each leaves the stack, and its line down
SUMS = (4.78, 3.53, 2.28)
MODULE = 4.82  # the middle of the one that is shown
Curve = NDArray[np.float32]


class Trace(NamedTuple):
    """[tokens, neurons] each."""

    membrane: Curve
    threshold: Curve
    spikes: Curve


def draw_neurogen(path: str | Path) -> None:
    with new_sheet(path, 10.9, 7.4) as sheet:
        _draw_brain(sheet)
        _draw_connections(sheet)
        _draw_inputs(sheet)
        trace = module_trace()
        _draw_columns(sheet, trace.spikes[SHOWN])
        _draw_spikes(sheet)
        sheet.title(7.15, 7.1, "What the neurons do", NOTE)
        _draw_neuron(sheet, trace)
        _draw_column(sheet, trace)


NOTE = (
    "Computed by the model, untrained, on random tokens.\n"
    f"To be seen better, strength is {STRENGTH:g} where training begins\n"
    f"with 1; membranes fade in {LEAK:g} tokens, thresholds in {FADE:g}."
)


def module_trace() -> Trace:
    """Of a module as it is before training, but for the strength of its thresholds and the times of its neurons."""
    model = NeuroGen(CONFIG).eval()
    model.initialise(SEED)
    module, state, found = model.brain[0], State(), []
    with torch.no_grad():
        module.strength.fill_(STRENGTH)
        module.leak.fill_(_before_sigmoid(LEAK))
        module.fade.fill_(_before_sigmoid(FADE))
        for token in torch.randint(CONFIG.vocab_size, (TOKENS,), generator=torch.Generator().manual_seed(SEED)):
            module(model.embedding(token.view(1, 1)), None, state)
            found.append((state.membrane[0], module.base + STRENGTH * state.trace[0], state.late[0, -1]))
    return Trace(*(torch.stack(part).numpy() for part in zip(*found, strict=True)))


def _before_sigmoid(tokens: float) -> float:
    """Of exp(-1 / tokens), as the model keeps it."""
    return -math.log(math.expm1(1 / tokens))


def _draw_brain(sheet: Sheet) -> None:
    sheet.title(0.16, 7.1, "The brain", "embed, modules, decode")
    sheet.text(BRAIN, 6.62, "tokens", fontsize=9.5, color=QUIET)
    boxes = ((6.22, "embedding", "#f6f8fa"), (5.45, "module 1", WRITE), (4.2, "module 2", WRITE))
    boxes += ((2.95, "module 3", WRITE), (1.65, "RMSNorm", "#f6f8fa"), (1.0, "output table", "#f6f8fa"))
    for y, name, fill in boxes:
        sheet.box(BRAIN, y, 1.4, 0.36, name, fill)
    for y in SUMS:
        sheet.box(BRAIN, y, 1.4, 0.3, "weighted sum", PACE, fontsize=9.5)
    stops = (6.22, 5.45, 4.78, 4.2, 3.53, 2.95, 2.28, 1.65, 1.0, 0.42)
    half = {y: 0.15 if y in SUMS else 0.18 for y in stops}  # of a box's height
    for above, below in pairwise(stops):
        sheet.arrow((BRAIN, above - half[above]), (BRAIN, below + half[below]))
    sheet.arrow((BRAIN, 6.54), (BRAIN, 6.4))
    sheet.text(BRAIN, 0.46, "next token", fontsize=9.5, color=QUIET)
    sheet.text(0.16, 0.16, "Each sum has a learned weight for each input.", ha="left", fontsize=9, color=QUIET)


def _draw_connections(sheet: Sheet) -> None:
    """From the embedding and every module to all sums that come later; the one just above goes straight down."""
    for i, (y, line) in enumerate(OUTPUTS):
        sheet.dots([(BRAIN, y)])
        sheet.arrow((BRAIN, y), (line, y), (line, SUMS[-1] + 0.08 * (1 - i)), colour=ORANGE, head=False)
        for target in SUMS[i:]:
            sheet.arrow((line, target + 0.08 * (1 - i)), (LEFT, target + 0.08 * (1 - i)), colour=ORANGE)


def _draw_inputs(sheet: Sheet) -> None:
    sheet.frame(3.2, 0.42, 6.44, 6.78)
    for y, corner in ((4.38, 6.78), (4.02, 0.42)):
        sheet.arrow((BRAIN + 0.7, y), (3.2, corner), colour="#c3c9d0", head=False, linestyle=(0, (4, 3)))
    sheet.title(3.2, 7.1, "One module", "")
    sheet.arrow((MODULE, 6.92), (MODULE, 6.62))
    sheet.box(MODULE, 6.45, 2.9, 0.34, "RMSNorm")
    sheet.arrow((MODULE, 6.28), (MODULE, 6.08))
    sheet.box(
        MODULE, 5.8, 2.9, 0.56, "dendrites, of each channel\n$d(t) = w_0 x(t) + \\ldots + w_3 x(t-3)$", fontsize=9.5
    )
    sheet.arrow((MODULE, 5.52), (MODULE, 5.32))
    sheet.box(MODULE, 5.15, 2.9, 0.34, "linear in:  current $I(t)$ of each neuron", fontsize=9.5)
    sheet.arrow((MODULE, 4.98), (MODULE, 4.78))
    membrane = "membrane\n$u(t) = leak \\cdot u(t-1) + \\sqrt{1-leak^2}\\ I(t)$"
    sheet.box(MODULE, 4.48, 2.9, 0.6, membrane, WRITE, fontsize=9.5)


def _draw_columns(sheet: Sheet, spikes: Curve) -> None:
    """Four of them, with the spikes of one token."""
    sheet.arrow((MODULE, 4.18), (MODULE, 3.98))
    for n, fired in enumerate(spikes.reshape(4, 64)):
        left = MODULE - 1.4 + 0.72 * n
        sheet.frame(left, 3.12, left + 0.64, 3.94, linestyle="-")
        places = [(left + 0.09 + 0.066 * (i % 8), 3.2 + 0.0945 * (i // 8)) for i in range(64)]
        sheet.dots(places, colour="#c9d6e6", size=3)
        sheet.dots([places[i] for i in np.flatnonzero(fired)], colour=ORANGE, size=3.8)
    sheet.arrow((MODULE, 3.1), (MODULE, 2.9))
    sheet.text(MODULE - 0.14, 3.01, "columns of 64 neurons", ha="right", fontsize=8.5, color=QUIET)
    sheet.text(MODULE + 0.14, 3.01, "orange: they spike", ha="left", fontsize=8.5, color=QUIET)


def _draw_spikes(sheet: Sheet) -> None:
    rule = "spike $s(t) = 1$ where $u(t) \\geq b(t)$ and it is\namong the 8 of its column furthest above"
    sheet.box(MODULE, 2.6, 2.9, 0.6, rule, WRITE, fontsize=9)
    rise = "threshold\n$b(t) = base + strength \\cdot a(t)$\n"
    rise += "$a(t) = fade \\cdot a(t-1)$\n$\\quad + (1-fade) \\cdot s(t-32)$"
    sheet.box(MODULE - 0.45, 1.4, 2.0, 0.92, rise, PACE, fontsize=9)
    sheet.arrow((MODULE - 1.1, 2.3), (MODULE - 1.1, 1.86), colour=ORANGE)
    sheet.arrow((MODULE, 1.86), (MODULE, 2.3), colour=ORANGE)
    sheet.text(MODULE - 1.04, 2.09, "32 tokens later", ha="left", fontsize=8.5, color=QUIET)
    sheet.box(MODULE + 1.08, 1.4, 0.74, 0.5, "linear\nout", READ, fontsize=9.5)
    sheet.arrow((MODULE + 1.08, 2.3), (MODULE + 1.08, 1.65))
    sheet.arrow((MODULE + 1.08, 1.15), (MODULE + 1.08, 0.2))
    sheet.text(MODULE + 1.0, 0.28, "to all later sums", ha="right", fontsize=9, color=QUIET)


def _draw_neuron(sheet: Sheet, trace: Trace) -> None:
    axes = sheet.plot(7.5, 3.75, 3.2, 2.3)
    membrane, threshold, spikes = (part[:, NEURON] for part in trace)
    fired = np.flatnonzero(spikes)
    axes.set_title("One neuron", fontsize=10)
    axes.plot(membrane, color=BLUE, linewidth=1.1, label="membrane $u$")
    axes.plot(threshold, color=ORANGE, linewidth=1.6, label="threshold $b$")
    axes.plot(fired, membrane[fired], "o", color=INK, markersize=3.5, label="spike")
    _mark_delay(axes, float(fired[0]), 1.15 * float(threshold.max()))
    axes.set_xlim(0, TOKENS)
    axes.set_xticks(range(0, TOKENS + 1, 32))
    axes.set_ylim(top=1.35 * axes.get_ylim()[1])
    axes.legend(loc="upper left", ncols=3, fontsize=8.5, borderaxespad=0, columnspacing=1, handlelength=1.4)


def _mark_delay(axes: Axes, first: float, height: float) -> None:
    ends = {"xy": (first + CONFIG.delay, height), "xytext": (first, height)}
    axes.annotate("", **ends, arrowprops={"arrowstyle": "<->", "color": QUIET, "shrinkA": 0, "shrinkB": 0})
    axes.text(first + CONFIG.delay + 2, height, f"{CONFIG.delay} tokens", color=QUIET, fontsize=8.5, va="center")


def _draw_column(sheet: Sheet, trace: Trace) -> None:
    axes = sheet.plot(7.5, 0.55, 3.2, 2.6)
    axes.set_title("Spikes of its column of 64", fontsize=10)
    time, neuron = np.nonzero(trace.spikes[:, : CONFIG.column_size])
    chosen = neuron == NEURON
    axes.plot(time[~chosen], neuron[~chosen], "|", color=QUIET, markersize=3.2)
    axes.plot(time[chosen], neuron[chosen], "|", color=INK, markersize=5, markeredgewidth=1.6)
    axes.set_xlim(0, TOKENS)
    axes.set_ylim(-1, 64)
    axes.set_xticks(range(0, TOKENS + 1, 32))
    axes.set_yticks(range(0, 65, 16))
    axes.set_xlabel("token", fontsize=9, labelpad=2)
    axes.set_ylabel("neuron", fontsize=9, labelpad=2)
