// A dataset in the making: how far, how fast, and every shard as one cell.
import { meter, swatch } from "../app/controls.js";
import { h, mark, replace, say } from "../app/dom.js";
import { compact, compactTick, count, duration, percent, timeTick, whole } from "../app/format.js";
import { Chart } from "../charts/chart.js";
import { section, shareBar } from "./part.js";

const NUMBERS = [
  ["share", "Done"],
  ["eta", "Time left"],
  ["text", "Text"],
  ["rate", "Tokens/s"],
  ["tokens", "Tokens"],
  ["documents", "Documents"],
  ["rejects", "Rejected"],
];
/** A stage has the colour of the phase that it is like. */
const STAGES = { read: "data_wait", tokenize: "tokenization", write: "checkpoint", verify: "evaluation" };

export class Prepare {
  constructor(id) {
    this.cells = new Map();
    this.tiles = Object.fromEntries(NUMBERS.map(([name]) => [name, h("dd", { "data-testid": `prepare-${name}` })]));
    const tiles = NUMBERS.map(([name, label]) => h("div", {}, h("dt", {}, label), this.tiles[name]));
    this.meter = meter("Prepared", "wide");
    this.words = h("p", { class: "dim" });
    this.grid = h("ol", { class: "shards", "aria-label": "Shards", "data-testid": "shard-grid" });
    this.stages = h("div", { class: "stages" });
    this.chart = new Chart({ id: "prepare-rate", title: "Text per second", size: "small" });
    const grid = h("div", { class: "grid" }, this.chart.element, this.stages);
    const numbers = h("dl", { class: "numbers" }, tiles);
    this.element = section(id, "Preparing", this.meter.element, this.words, numbers, this.grid, grid);
  }

  update(prepare, dataset) {
    const over = !prepare || (dataset.state === "ready" && prepare.state !== "preparing");
    this.element.hidden = over;
    if (over) return;
    const share = prepare.share ?? 0;
    this.meter.set(share);
    mark(this.element, "data-state", dataset.state);
    say(
      this.words,
      dataset.state === "stopped"
        ? "It was stopped. The same command goes on where it was."
        : `${whole(prepare.tasks_done)} of ${count(prepare.tasks, "task")} in ${duration(prepare.seconds)}`,
    );
    const values = {
      share: percent(share),
      eta: duration(prepare.eta_seconds),
      text: prepare.text_mb_per_s ? `${compact(prepare.text_mb_per_s)} MB/s` : "–",
      rate: compact(prepare.tokens_per_s),
      tokens: compact(prepare.tokens),
      documents: compact(prepare.documents),
      rejects: compact(prepare.rejects),
    };
    for (const [name, value] of Object.entries(values)) say(this.tiles[name], value);
    this.drawShards(prepare.shards || []);
    this.drawStages(prepare.stage_shares || {});
    this.drawRate(prepare.rate);
  }

  drawShards(shards) {
    for (const shard of shards) {
      let cell = this.cells.get(shard.index);
      if (!cell) {
        cell = { fill: h("i") };
        cell.element = h("li", { "data-shard": shard.index }, cell.fill, h("span", {}, shard.index));
        this.cells.set(shard.index, cell);
        this.grid.append(cell.element);
      }
      mark(cell.element, "data-state", shard.state);
      const name = shard.name || `shard ${shard.index}`;
      mark(
        cell.element,
        "title",
        `${name}: ${shard.state}, ${percent(shard.share ?? 0)}, ${compact(shard.tokens)} tokens`,
      );
      cell.fill.style.setProperty("transform", `scaleX(${shard.state === "done" ? 1 : (shard.share ?? 0)})`);
    }
  }

  drawStages(shares) {
    const known = Object.entries(shares).filter(([, share]) => share > 0);
    const parts = known
      .sort((a, b) => b[1] - a[1])
      .map(([name, share]) => ({
        name,
        share,
        colour: `--phase-${STAGES[name] || "python"}`,
        words: `${name} ${percent(share)}`,
      }));
    const legend = parts.map((one) => h("li", {}, swatch(one.colour), one.words.replaceAll("_", " ")));
    const bar = () => shareBar(parts, parts.map((one) => one.words).join(", "));
    replace(
      this.stages,
      parts.length > 0 && [h("h3", {}, "Where a worker's time goes"), bar(), h("ul", { class: "legend" }, legend)],
    );
  }

  drawRate(rate) {
    this.chart.draw({
      label: "Text per second while preparing",
      series: [{ name: "MB/s", x: rate?.seconds || [], y: rate?.mb_per_s || [], colour: "--series-3" }],
      x: { format: timeTick, time: true, title: "%{x:,.0f} s" },
      y: { format: (value) => `${compactTick(value)} MB`, hover: ".3g", zero: true },
      nothing: "Speed is known after a few seconds.",
    });
  }

  close() {
    this.chart.close();
  }
}
