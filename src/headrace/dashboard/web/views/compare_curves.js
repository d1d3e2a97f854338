// The curves of a comparison: which charts there are, and every run on one axis.
import { has, onto, smooth, wallTime } from "../app/columns.js";
import { compactTick, percentTick, short, timeTick } from "../app/format.js";

export const AXES = {
  steps: { label: "Steps", format: compactTick, title: "step %{x:,d}" },
  tokens: { label: "Tokens", format: compactTick, title: "%{x:,.3s} tokens" },
  time: { label: "Time", format: timeTick, time: true, title: "%{x:,.0f} s" },
};

const LOSS = { size: "tall", format: short, hover: ".4f", mayLog: true };
export const CHARTS = [
  { id: "loss", title: "Training loss", column: "train_loss", smoothed: true, ...LOSS },
  { id: "val", title: "Validation loss", evals: "val_loss", ...LOSS },
  {
    id: "speed",
    title: "Tokens per second",
    column: "tokens_per_second",
    format: compactTick,
    hover: ",.0f",
    zero: true,
  },
  {
    id: "wait",
    title: "Data wait, share of a step",
    share: "data_wait",
    format: percentTick,
    hover: ".2%",
    zero: true,
    least: 0.01,
  },
];

export const colourOf = (at) => `--series-${1 + (at % 8)}`;

/** @param {{axis: string, smoothing: number, log: boolean, hidden: Set<string>}} how */
export function curves(about, runs, how) {
  const axis = AXES[how.axis];
  return {
    label: `${about.title} of ${runs.length} runs`,
    series: runs.flatMap((run, at) => (how.hidden.has(run.summary.name) ? [] : lines(run, colourOf(at), about, how))),
    x: { ...axis, range: span(runs, how.axis) },
    y: { format: about.format, hover: about.hover, zero: about.zero, least: about.least, log: how.log && about.mayLog },
    nothing: about.evals ? "None of these runs was evaluated yet." : "Nothing was measured yet.",
  };
}

/** One axis for all charts, from the beginning to where the longest run is. */
function span(runs, axis) {
  return [0, Math.max(...runs.map((run) => along(run, axis).at(-1) || 0), 1)];
}

/** The axis of a run: one place for each of its rows. */
function along({ columns, summary }, axis) {
  if (axis === "time") return wallTime(columns);
  if (axis === "tokens" && summary.step) return columns.steps.map((step) => (step * summary.tokens) / summary.step);
  return columns.steps;
}

function lines(run, colour, about, how) {
  const { columns, evals, summary } = run;
  const base = { name: summary.name, colour, width: 2 };
  const x = along(run, how.axis);
  if (about.evals) {
    const places = how.axis === "steps" ? evals.steps : onto(columns.steps, x, evals.steps);
    return evals.steps.length ? [{ ...base, kind: "dots", x: places, y: evals[about.evals] }] : [];
  }
  const column = about.share ? columns.shares?.[about.share] : columns[about.column];
  if (!has(column)) return [];
  const weight = about.smoothed ? how.smoothing : 0;
  const raw = weight ? [{ ...base, x, y: column, opacity: 0.22, width: 1, quiet: true }] : [];
  return [...raw, { ...base, x, y: smooth(column, weight) }];
}
