// Runs side by side: their curves over steps, tokens or time, their last numbers, and where their configs differ.
import { get } from "../app/api.js";
import { append, appendEvals } from "../app/columns.js";
import { button, crumbs, smoothing } from "../app/controls.js";
import { h, mark, nextFrame, replace } from "../app/dom.js";
import { count } from "../app/format.js";
import { page, title } from "../app/look.js";
import { compareUrl, keepInUrl, namesIn, runUrl } from "../app/route.js";
import { Chart } from "../charts/chart.js";
import { AXES, CHARTS, colourOf, curves } from "./compare_curves.js";
import { CompareTables } from "./compare_tables.js";

const POINTS = 800;
const names = (route) => namesIn(route.search, "runs");
const address = (wanted) => `/api/compare?runs=${wanted.map(encodeURIComponent).join(",")}&points=${POINTS}`;

export function openCompare({ root, route, found, go }) {
  return new Compare(root, route, found, go);
}
openCompare.api = (route) => address(names(route));

class Compare {
  constructor(root, route, found, go) {
    Object.assign(this, { go, found, wanted: names(route), hidden: new Set() });
    this.axis = AXES[route.query.get("x")] ? route.query.get("x") : "steps";
    this.smoothing = Math.min(0.99, Math.max(0, Number(route.query.get("smooth") ?? 0.6)));
    this.log = route.query.get("log") === "1";
    this.charts = CHARTS.map((about) => ({ about, chart: new Chart(about) }));
    this.chips = h("ul", { class: "run-chips", "data-testid": "compared" });
    this.tables = new CompareTables(route);
    page("runs", null);
    const many = h("span", { class: "dim count" }, count(found.runs.length, "run"));
    const bar = h("div", { class: "bar" }, h("h1", {}, "Compare"), many, this.tools());
    const grid = h(
      "div",
      { class: "compare-grid" },
      this.charts.map(({ chart }) => chart.element),
    );
    replace(root, crumbs("/", "Runs"), bar, this.chips, grid, this.tables.element);
    this.stream = () => `/events?view=compare&runs=${this.wanted.map(encodeURIComponent).join(",")}`;
    this.update = () => this.draw();
    title(found.runs.map(({ summary }) => summary.name).join(" / "));
    this.draw();
  }

  tools() {
    const axis = (id) => this.set({ axis: id }, { x: id === "steps" ? null : id });
    this.buttons = Object.entries(AXES).map(([id, { label }]) =>
      button("toggle", label, () => axis(id), { "data-axis": id, "data-testid": `axis-${id}` }),
    );
    const log = () => this.set({ log: !this.log }, { log: this.log ? null : 1 });
    this.logButton = button("toggle", "log", log, { "data-testid": "log-axis" });
    const smooth = smoothing(this.smoothing, (value) => this.set({ smoothing: value }, { smooth: String(value) }));
    const axes = h("span", { class: "group", role: "group", "aria-label": "Axis" }, this.buttons);
    return h(
      "div",
      { class: "tools end" },
      h("span", { class: "dim" }, "over"),
      axes,
      h("label", {}, "smooth", smooth),
      this.logButton,
    );
  }

  set(changes, query) {
    Object.assign(this, changes);
    keepInUrl(query);
    nextFrame(this.update);
  }

  draw() {
    for (const button of this.buttons) mark(button, "aria-pressed", String(button.dataset.axis === this.axis));
    mark(this.logButton, "aria-pressed", String(this.log));
    this.drawChips();
    for (const { about, chart } of this.charts) chart.draw(curves(about, this.found.runs, this));
    this.tables.update(this.found);
  }

  drawChips() {
    const key = JSON.stringify([
      this.found.runs.map(({ summary }) => [summary.name, summary.status]),
      [...this.hidden],
    ]);
    if (key === this.chipKey) return;
    this.chipKey = key;
    replace(
      this.chips,
      this.found.runs.map(({ summary }, at) => this.chip(summary, colourOf(at))),
    );
  }

  chip({ name, status }, colour) {
    const shown = {
      "aria-pressed": String(!this.hidden.has(name)),
      "aria-label": `Show ${name}`,
      style: { "--c": `var(${colour})` },
    };
    const without = () => this.go(compareUrl(this.wanted.filter((other) => other !== name)));
    const drop = this.wanted.length > 2 && button("drop", "×", without, { "aria-label": `Leave ${name} out` });
    return h(
      "li",
      { "data-status": status },
      button("swatch", "", () => this.toggle(name), shown),
      h("a", { href: runUrl(name) }, name),
      drop,
    );
  }

  toggle(name) {
    if (!this.hidden.delete(name)) this.hidden.add(name);
    nextFrame(this.update);
  }

  event(kind, data) {
    const run = this.found.runs.find(({ summary }) => summary.name === data.name);
    if (!run) return;
    if (kind === "reset") this.renew();
    if (kind === "points") {
      if (data.columns) append(run.columns, data.columns);
      appendEvals(run.evals, data.evals);
      if (data.summary) run.summary = data.summary;
      if (run.columns.steps.length > 2 * POINTS) this.renew();
    }
    nextFrame(this.update);
  }

  async renew() {
    const found = await get(address(this.wanted)).catch(() => null);
    if (!found) return;
    this.found = found;
    nextFrame(this.update);
  }

  close() {
    for (const { chart } of this.charts) chart.close();
  }
}
