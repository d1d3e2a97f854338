// What the run was fed: each source against its target, now and over the steps.
import { h, replace } from "../app/dom.js";
import { compact, percent } from "../app/format.js";
import { Chart } from "../charts/chart.js";
import { STEP_AXIS } from "./curves.js";
import { section } from "./part.js";

const colourOf = (at) => `--series-${1 + (at % 8)}`;

export class Mix {
  constructor(id, { zoom }) {
    this.id = id;
    this.short = "Data mix";
    this.table = h("table", { class: "mix-table", "data-testid": "mix" });
    this.chart = new Chart({ id: "mix", title: "Share of each source, over the run", size: "middle", zoom });
    this.element = section(
      id,
      "Data mix",
      h("div", { class: "anatomy-grid" }, this.chart.element, h("div", { class: "scroll" }, this.table)),
    );
  }

  update({ mix }, _columns, range) {
    this.element.hidden = !mix?.sources?.length;
    if (this.element.hidden) return;
    const key = JSON.stringify(mix.sources.map((one) => [one.name, one.actual, one.tokens]));
    if (key !== this.key) this.drawTable(mix);
    this.key = key;
    const over = mix.steps?.length > 1;
    this.chart.draw({
      label: "Share of each source over the run",
      series: over
        ? mix.sources.flatMap((one, at) => [
            {
              name: `${one.name} target`,
              x: [mix.steps[0], mix.steps[mix.steps.length - 1]],
              y: [one.target, one.target],
              colour: colourOf(at),
              dash: "4px 4px",
              width: 1,
              opacity: 0.7,
              quiet: true,
            },
            { name: one.name, x: mix.steps, y: one.share_over_steps, colour: colourOf(at) },
          ])
        : [],
      legend: [
        ...mix.sources.map((one, at) => ({ name: one.name, colour: colourOf(at) })),
        { name: "target", colour: "--dim", shape: "dash" },
      ],
      x: { ...STEP_AXIS, range },
      y: { format: (value) => percent(value, 0), hover: ".2%", zero: true, ceiling: 1.02 },
      nothing: "The run says what it read from each source at its next logged step.",
    });
  }

  drawTable(mix) {
    replace(
      this.table,
      h("caption", {}, "So far, against the target"),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["Source", "", "Share", "Target", "Tokens", "Epochs"].map((words, at) =>
            h("th", { scope: "col", class: at > 1 ? "n" : null }, words),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        mix.sources.map((one, at) =>
          h(
            "tr",
            { "data-source": one.name },
            h(
              "th",
              { scope: "row", title: one.name },
              h("i", { class: "square", style: { "--c": `var(${colourOf(at)})` } }),
              one.name,
            ),
            h(
              "td",
              { class: "track target" },
              h("i", { style: { width: percent(one.actual ?? 0, 2), "--c": `var(${colourOf(at)})` } }),
              h("b", { title: `target ${percent(one.target)}`, style: { left: percent(one.target ?? 0, 2) } }),
            ),
            h("td", { class: "n" }, percent(one.actual, 1)),
            h("td", { class: "n dim" }, percent(one.target, 1)),
            h("td", { class: "n" }, compact(one.tokens)),
            h("td", { class: "n" }, one.epochs === null || one.epochs === undefined ? "–" : one.epochs.toFixed(2)),
          ),
        ),
      ),
    );
  }

  close() {
    this.chart.close();
  }
}
