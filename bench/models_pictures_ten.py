"""ten.png: a block of TEN, how its recurrence is computed in chunks, and what an eigenstate remembers of one token."""

from __future__ import annotations

import math
from pathlib import Path

import torch
from matplotlib.patches import Rectangle
from models_pictures_sheet import PACE, READ, WRITE, Sheet, new_sheet

from headrace.models.eigenstates import CHUNK, follow
from headrace.training.plots import BLUE, GREEN, INK, ORANGE, QUIET

Q, V, B, PACES, GATE = 1.1, 2.12, 3.18, 4.8, 6.16  # the middles of the columns
LEFT, RIGHT = 0.62, 5.7  # of what spans q, v, b and the eigenvalues
MIDDLE = (LEFT + RIGHT) / 2
STREAM = 0.3
SHOWN = 8  # cells of a chunk
EIGENSTATES = ((3.0, 0.0, ORANGE), (24.0, 1 / 16, BLUE), (60.0, 1 / 96, GREEN))  # half-life, turns a token


def draw_ten(path: str | Path) -> None:
    with new_sheet(path, 10.9, 8.8) as sheet:
        _draw_projections(sheet)
        _draw_memory(sheet)
        _draw_output(sheet)
        _draw_feed_forward(sheet)
        _draw_chunks(sheet, 7.15, 8.5)
        _draw_eigenstates(sheet, 7.15, 3.2)


def _draw_projections(sheet: Sheet) -> None:
    sheet.title(
        0.16, 8.5, "One block of TEN", "A table of tokens, a stack of these blocks, RMSNorm, the table of outputs."
    )
    sheet.text(STREAM, 7.93, "x", fontsize=11, fontstyle="italic")
    sheet.arrow((STREAM, 7.8), (STREAM, 1.5))
    sheet.dots([(STREAM, 7.62)])
    sheet.box((LEFT + GATE + 0.48) / 2, 7.62, GATE + 0.48 - LEFT, 0.32, "RMSNorm")
    sheet.arrow((STREAM, 7.62), (LEFT, 7.62))
    for x, name, fill in ((Q, "$q$", READ), (V, "$v$", WRITE), (B, "$b$", WRITE)):
        sheet.arrow((x, 7.46), (x, 7.2))
        sheet.box(x, 7.03, 0.9, 0.34, f"linear  {name}", fill)
        sheet.arrow((x, 6.86), (x, 6.6))
    sheet.box((Q + B) / 2, 6.38, B - Q + 0.9, 0.44, "short convolution: 4 taps, SiLU")
    sheet.arrow((PACES, 7.46), (PACES, 7.2))
    sheet.box(PACES, 6.94, 1.28, 0.52, "pace, of a head\nsoftplus($w\\cdot x + w_0$)", PACE, fontsize=9)
    sheet.arrow((GATE, 7.46), (GATE, 7.2))
    sheet.box(GATE, 6.94, 0.96, 0.52, "linear  gate\nSiLU")


def _draw_memory(sheet: Sheet) -> None:
    sheet.arrow((PACES, 6.68), (PACES, 6.12))
    eigenvalue = "$\\exp(pace\\,(-rate_k + 2\\pi i f_k))$"
    sheet.box(PACES, 5.79, 1.8, 0.66, f"eigenvalues $\\lambda_k(t) =$\n{eigenvalue}", PACE, fontsize=9)
    for x in (Q, V, B):
        sheet.arrow((x, 6.16), (x, 5.94 if x != V else 4.98))
    sheet.box(Q, 5.69, 0.9, 0.5, "unit\nlength", READ, fontsize=9)
    sheet.box(B, 5.69, 0.94, 0.5, "unit length\n$\\times\\sqrt{1-|\\lambda_k|^2}$", WRITE, fontsize=9)
    sheet.arrow((PACES - 0.9, 5.69), (B + 0.47, 5.69), colour=ORANGE)
    sheet.arrow((B, 5.44), (B, 4.98))
    sheet.arrow((PACES, 5.46), (PACES, 4.98))
    _draw_recurrence(sheet)
    sheet.arrow((Q, 5.44), (Q, 3.92))
    sheet.arrow(((V + PACES) / 2, 4.3), ((V + PACES) / 2, 3.92))
    sheet.box(MIDDLE, 3.68, RIGHT - LEFT, 0.48, "", READ)
    sheet.text(MIDDLE, 3.68, "read    $y(t) = \\mathrm{Re}\\ \\Sigma_k\\ q_k^{*}(t)\\ c_k(t)$", fontsize=11)


def _draw_recurrence(sheet: Sheet) -> None:
    left = V - 0.48
    middle, width = (left + RIGHT) / 2, RIGHT - left
    sheet.box(middle, 4.64, width, 0.68, "", WRITE)
    sheet.text(middle, 4.79, "eigenstates $k = 1 \\ldots K$ of each head, a complex vector each", fontsize=9)
    sheet.text(middle, 4.5, "$c_k(t) = \\lambda_k(t)\\ c_k(t-1) + b_k(t)\\ v(t)$", fontsize=11)
    edge = middle + width / 2
    loop = ((edge, 4.78), (edge + 0.2, 4.78), (edge + 0.2, 4.5), (edge, 4.5))
    sheet.arrow(*loop, colour=BLUE)


def _draw_output(sheet: Sheet) -> None:
    sheet.arrow((MIDDLE, 3.44), (MIDDLE, 3.22))
    sheet.box(MIDDLE, 3.05, 2.2, 0.34, "RMSNorm of each head")
    sheet.arrow((MIDDLE, 2.88), (MIDDLE, 2.68))
    sheet.circle(MIDDLE, 2.55, "$\\times$")
    sheet.arrow((GATE, 6.68), (GATE, 2.55), (MIDDLE + 0.13, 2.55))
    sheet.arrow((MIDDLE, 2.42), (MIDDLE, 2.22))
    sheet.box(MIDDLE, 2.05, 2.2, 0.34, "linear  out")
    sheet.arrow((MIDDLE, 1.88), (MIDDLE, 1.37), (STREAM + 0.13, 1.37))
    sheet.circle(STREAM, 1.37, "+")
    for i, (fill, text) in enumerate(((WRITE, "written and kept"), (PACE, "how it fades and turns"), (READ, "read"))):
        sheet.box(4.9, 2.12 - 0.26 * i, 0.24, 0.16, "", fill)
        sheet.text(5.1, 2.12 - 0.26 * i, text, ha="left", fontsize=9, color=QUIET)


def _draw_feed_forward(sheet: Sheet) -> None:
    sheet.arrow((STREAM, 1.24), (STREAM, 0.5))
    sheet.dots([(STREAM, 1.02)])
    sheet.arrow((STREAM, 1.02), (LEFT, 1.02))
    sheet.box(1.37, 1.02, 1.5, 0.34, "RMSNorm")
    sheet.arrow((2.12, 1.02), (2.4, 1.02))
    sheet.box(3.74, 1.02, 2.68, 0.34, "SwiGLU feed-forward layer")
    sheet.arrow((5.08, 1.02), (5.36, 1.02), (5.36, 0.37), (STREAM + 0.13, 0.37))
    sheet.circle(STREAM, 0.37, "+")
    sheet.arrow((STREAM, 0.24), (STREAM, 0.04))
    sheet.text(STREAM + 0.2, 0.12, "to the next block", ha="left", fontsize=9, color=QUIET)


def _draw_chunks(sheet: Sheet, left: float, top: float) -> None:
    note = f"In chunks of {CHUNK} tokens. Within a chunk, every token\nreads the earlier ones, by products of matrices."
    sheet.title(left, top, "Computed in chunks", note)
    side, step = 0.88, 1.2
    for n in range(3):
        x = left + n * step
        _draw_tokens(sheet, x, top - 1.0, side, f"{n * CHUNK} ... {(n + 1) * CHUNK - 1}")
        _draw_triangle(sheet, x, top - 2.55, side)
        sheet.arrow((x + side / 2, top - 1.22), (x + side / 2, top - 1.6), colour=QUIET)
        _draw_state(sheet, x + side / 2, top - 3.3, n, step)
    sheet.text(left + 2 * step + side + 0.12, top - 0.9, "...", ha="left", fontsize=12)
    sheet.text(left, top - 3.85, NOTE, ha="left", va="top", fontsize=9.5, color=QUIET)


NOTE = (
    "From chunk to chunk only the state passes: of each\n"
    "head, $K$ complex vectors. It fades by all $\\lambda$ of a chunk,\n"
    "whose tokens read it too. Generation keeps no more\n"
    "than the state and 3 inputs of the convolution."
)


def _draw_tokens(sheet: Sheet, left: float, bottom: float, side: float, label: str) -> None:
    cell = side / SHOWN
    for i in range(SHOWN):
        place = (left + i * cell, bottom)
        sheet.axes.add_patch(Rectangle(place, cell, 0.17, facecolor="#eef2f6", edgecolor="#afb8c1", linewidth=0.8))
    sheet.text(left + side / 2, bottom - 0.12, label, fontsize=9, color=QUIET)


def _draw_triangle(sheet: Sheet, left: float, bottom: float, side: float) -> None:
    """A shade for each pair of tokens, paler for those far apart, and nothing for what comes later."""
    cell = side / SHOWN
    for row in range(SHOWN):
        for column in range(SHOWN):
            place = (left + column * cell, bottom + (SHOWN - 1 - row) * cell)
            alpha = 0.85 * 0.8 ** (row - column) if column <= row else 0.0
            patch = Rectangle(place, cell, cell, facecolor=BLUE, alpha=alpha, linewidth=0)
            sheet.axes.add_patch(patch)
    sheet.frame(left, bottom, left + side, bottom + side, linestyle="-")
    sheet.text(left + 0.96 * side, bottom + 0.86 * side, f"{CHUNK} x {CHUNK}", ha="right", fontsize=8.5, color=QUIET)


def _draw_state(sheet: Sheet, x: float, y: float, n: int, step: float) -> None:
    sheet.arrow((x, y + 0.71), (x, y + 0.17), colour=BLUE)
    sheet.box(x, y, 0.62, 0.34, "state", WRITE, fontsize=9.5)
    end = x + step - 0.31 if n < 2 else x + 0.75
    sheet.arrow((x + 0.31, y), (end, y), colour=BLUE)
    sheet.text(x + 0.6, y - 0.15, "fades", fontsize=9, color=QUIET)
    if n < 2:  # what the next chunk reads
        between = x + step / 2
        sheet.dots([(between, y)], colour=BLUE)
        sheet.arrow((between, y), (between, y + 1.15), (x + step - 0.44, y + 1.15), colour=GREEN)


def _draw_eigenstates(sheet: Sheet, left: float, top: float) -> None:
    note = "What three eigenstates keep of a token written at 0."
    sheet.title(left, top, "Fading and turning", note)
    axes = sheet.plot(left + 0.32, 0.5, 3.2, top - 1.0)
    inputs = torch.zeros(1, 97, 1)
    inputs[0, 0] = 1.0
    for half_life, turn, colour in EIGENSTATES:
        decay = torch.full((1, 1, 1), -math.log(2) / half_life)
        found = follow(inputs.to(torch.complex64), decay, torch.full((1, 1, 1), turn))[0, :, 0].real
        label = f"half-life {half_life:g}, " + (f"a turn in {1 / turn:g}" if turn else "no turn")
        axes.plot(found.numpy(), color=colour, linewidth=1.6, label=label)
    axes.set_xlim(0, 96)
    axes.set_ylim(-0.9, 1.6)
    axes.set_xticks(range(0, 97, 16))
    axes.set_yticks([-0.5, 0, 0.5, 1])
    axes.set_xlabel("tokens later", fontsize=9, labelpad=2)
    axes.axhline(0, color=INK, linewidth=0.6)
    axes.legend(loc="upper right", fontsize=8.5, borderaxespad=0, labelspacing=0.25)
