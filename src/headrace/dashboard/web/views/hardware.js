// What the machine did, and what the model said about itself: small charts, made as their columns appear.
import { has, lastOf } from "../app/columns.js";
import { h } from "../app/dom.js";
import { bytes, bytesTick, percent, short } from "../app/format.js";
import { Chart } from "../charts/chart.js";
import { STEP_AXIS } from "./curves.js";
import { section } from "./part.js";

const SHARE = { format: (value) => percent(value, 0), hover: ".1%", range: [0, 1.02] };
const BYTES = { format: bytes, tick: bytesTick, hover: ".3s", zero: true, unit: "B" };
const MACHINE = [
  { id: "cpu", title: "CPU, all cores", ...SHARE, colour: "--series-1" },
  { id: "gpu", title: "GPU", ...SHARE, colour: "--series-6" },
  { id: "memory", title: "Memory", ...BYTES, colour: "--series-4" },
  { id: "gpu_memory", title: "GPU memory", ...BYTES, colour: "--series-5" },
];

class Grid {
  constructor(id, name, zoom) {
    this.id = id;
    this.short = name;
    this.zoom = zoom;
    this.charts = new Map();
    this.grid = h("div", { class: "grid" });
    this.element = section(id, name, this.grid);
  }

  show(about, columns, column, range) {
    let chart = this.charts.get(about.id);
    if (!chart) {
      this.charts.set(
        about.id,
        (chart = new Chart({ id: about.id, title: about.title, size: "small", zoom: this.zoom })),
      );
      this.grid.append(chart.element);
    }
    chart.note.textContent = has(column) ? about.format(lastOf(column)) : "";
    chart.draw({
      label: `${about.title} over the steps`,
      series: [
        {
          name: about.title,
          x: has(column) ? columns.steps : [],
          y: column || [],
          colour: about.colour,
          unit: about.unit,
        },
      ],
      x: { ...STEP_AXIS, range },
      y: { format: about.tick || about.format, hover: about.hover, zero: about.zero, range: about.range },
    });
  }

  close() {
    for (const chart of this.charts.values()) chart.close();
  }
}

export class Hardware extends Grid {
  constructor(id, { zoom }) {
    super(id, "Hardware", zoom);
  }

  update(found, columns, range) {
    const there = MACHINE.filter(({ id }) => has(found.columns[id]));
    this.element.hidden = !there.length;
    for (const about of there) this.show(about, columns, columns[about.id], range);
  }
}

export class Metrics extends Grid {
  constructor(id, { zoom }) {
    super(id, "Model metrics", zoom);
  }

  update(found, columns, range) {
    const names = Object.keys(found.columns.metrics || {}).filter((name) => has(found.columns.metrics[name]));
    this.element.hidden = !names.length;
    names.forEach((name, at) =>
      this.show(
        {
          id: name,
          title: name.replaceAll("_", " "),
          format: short,
          hover: ".4g",
          colour: `--series-${1 + ((at + 2) % 8)}`,
        },
        columns,
        columns.metrics?.[name],
        range,
      ),
    );
  }
}
