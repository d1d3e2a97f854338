// Loss and validation, speed, learning rate and gradient: one axis of steps, and a zoom that they share.
import { has, lastOf, smooth } from "../app/columns.js";
import { button, smoothing } from "../app/controls.js";
import { h, mark } from "../app/dom.js";
import { compact, compactTick, mfu, percentTick, short } from "../app/format.js";
import { keepInUrl } from "../app/route.js";
import { Chart } from "../charts/chart.js";
import { section } from "./part.js";

export const STEP_AXIS = { format: compactTick, title: "step %{x:,d}" };

/** Charts with one line each: where it comes from and how its numbers read. */
const SINGLE = [
  {
    id: "speed",
    column: "tokens_per_second",
    title: "Tokens per second",
    format: compact,
    tick: compactTick,
    hover: ",.0f",
    zero: true,
    colour: "--series-3",
  },
  {
    id: "mfu",
    column: "mfu",
    title: "MFU",
    format: mfu,
    tick: percentTick,
    hover: ".1%",
    zero: true,
    colour: "--series-4",
  },
  {
    id: "rate",
    column: "learning_rate",
    title: "Learning rate",
    format: short,
    hover: ".3g",
    zero: true,
    colour: "--series-7",
  },
  {
    id: "norm",
    column: "grad_norm",
    title: "Gradient norm",
    format: short,
    hover: ".3g",
    zero: true,
    colour: "--series-8",
  },
];

export class Curves {
  constructor(id, { route, zoom }) {
    this.id = id;
    this.short = "Curves";
    this.smoothing = Math.min(0.99, Math.max(0, Number(route.query.get("smooth")) || 0));
    this.log = route.query.get("log") === "1";
    this.zoom = zoom;
    this.loss = new Chart({ id: "loss", title: "Loss", size: "tall", zoom, tools: this.tools() });
    this.singles = SINGLE.map((about) => ({
      about,
      chart: new Chart({ id: about.id, title: about.title, size: "small", zoom }),
    }));
    this.element = section(
      id,
      "Curves",
      h(
        "div",
        { class: "curve-grid" },
        this.loss.element,
        this.singles.map(({ chart }) => chart.element),
      ),
    );
  }

  tools() {
    const slider = smoothing(this.smoothing, (value) => this.set({ smoothing: value }, { smooth: value || null }));
    const log = () => this.set({ log: !this.log }, { log: this.log ? null : 1 });
    this.logButton = button("toggle", "log", log, { "aria-pressed": String(this.log), "data-testid": "log-axis" });
    this.reset = button("toggle", "whole run", () => this.zoom(null), { hidden: true, "data-testid": "zoom-reset" });
    return h("span", { class: "tools" }, this.reset, h("label", {}, "smooth", slider), this.logButton);
  }

  set(changes, query) {
    Object.assign(this, changes);
    mark(this.logButton, "aria-pressed", String(this.log));
    keepInUrl(query);
    this.draw();
  }

  update(found, columns, range) {
    Object.assign(this, { found, columns, range });
    this.reset.hidden = !range;
    this.draw();
  }

  draw() {
    if (!this.found) return;
    this.loss.note.textContent =
      this.found.full === false && !this.range
        ? "the newest steps; the whole run is being read"
        : this.range
          ? `steps ${this.range[0].toLocaleString("en-US")} to ${this.range[1].toLocaleString("en-US")}`
          : "";
    this.loss.draw(this.lossSpec());
    for (const { about, chart } of this.singles) {
      const column = this.columns[about.column];
      chart.element.hidden = !has(this.found.columns[about.column]) && about.id === "mfu";
      chart.note.textContent = has(column) ? about.format(lastOf(column)) : "";
      chart.draw(this.single(about, column));
    }
  }

  single(about, column) {
    const there = has(column);
    return {
      label: `${about.title} over the steps`,
      series: [{ name: about.title, x: there ? this.columns.steps : [], y: there ? column : [], colour: about.colour }],
      x: { ...STEP_AXIS, range: this.range },
      y: { format: about.tick || about.format, hover: about.hover, zero: about.zero },
    };
  }

  lossSpec() {
    const { steps, train_loss: mean, train_loss_min: low, train_loss_max: high } = this.columns;
    const { evals } = this.found;
    const inside = evals.steps
      .map((_, at) => at)
      .filter((at) => !this.range || (evals.steps[at] >= this.range[0] && evals.steps[at] <= this.range[1]));
    const series = [];
    if (has(low) && has(high))
      series.push({
        kind: "band",
        name: "range",
        x: steps,
        low,
        high,
        colour: "--series-1",
        opacity: 0.18,
        quiet: true,
      });
    if (this.smoothing)
      series.push({ name: "raw", x: steps, y: mean, colour: "--series-1", opacity: 0.3, width: 1, quiet: true });
    series.push({ name: "train", x: steps, y: smooth(mean, this.smoothing), colour: "--series-1", width: 2 });
    series.push({
      kind: "dots",
      name: "validation",
      x: inside.map((at) => evals.steps[at]),
      y: inside.map((at) => evals.val_loss[at]),
      colour: "--series-2",
      width: 2,
    });
    return {
      label: "Training and validation loss over the steps",
      series: has(mean) || inside.length ? series : [],
      legend: [
        { name: this.smoothing ? `train, smoothed ${this.smoothing.toFixed(2)}` : "train", colour: "--series-1" },
        ...(has(low) ? [{ name: "lowest to highest", colour: "--series-1", shape: "band" }] : []),
        ...(evals.steps.length ? [{ name: "validation", colour: "--series-2", shape: "dot" }] : []),
      ],
      x: { ...STEP_AXIS, range: this.range },
      y: { format: short, hover: ".4f", log: this.log },
      nothing: "The first loss comes with the first logged step.",
    };
  }

  close() {
    this.loss.close();
    for (const { chart } of this.singles) chart.close();
  }
}
