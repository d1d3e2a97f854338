// The tables of a comparison: last numbers with the best of each marked, and the configs with their differences.
import { h, mark, replace } from "../app/dom.js";
import { compact, duration, loss, mfu, percent, whole } from "../app/format.js";
import { keepInUrl, runUrl } from "../app/route.js";
import { colourOf } from "./compare_curves.js";
import { asText, named } from "./config.js";
import { section } from "./part.js";

const took = (run) => (run.started && run.updated ? run.updated - run.started : null);
const ROWS = [
  ["Status", (run) => run.status, (value) => value],
  ["Loss", (run) => run.loss, loss, Math.min],
  ["Validation loss", (run) => run.val_loss, loss, Math.min],
  ["Best validation loss", (run) => run.best_val_loss, loss, Math.min],
  ["Tokens/s", (run) => run.tokens_per_second, compact, Math.max],
  ["MFU", (run) => run.mfu, mfu],
  ["Data wait", (run) => run.data_wait_share, (value) => percent(value), Math.min],
  ["Parameters", (run) => run.parameters, compact],
  ["Tokens", (run) => run.tokens, compact],
  ["Steps", (run) => run.step, whole],
  ["Took", took, duration],
];

export class CompareTables {
  constructor(route) {
    this.only = route.query.get("all") !== "1";
    this.numbers = h("table", { class: "compare-table", "data-testid": "compare-numbers" });
    this.configs = h("table", { class: "compare-table", "data-testid": "compare-config" });
    this.toggle = h(
      "button",
      { type: "button", class: "toggle", "data-testid": "only-differences", onclick: () => this.flip() },
      "only differences",
    );
    this.element = h(
      "div",
      {},
      section(
        "numbers",
        "Numbers",
        h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers" }, this.numbers),
      ),
      section(
        "config",
        "Config",
        h("div", { class: "tools" }, this.toggle),
        h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Config" }, this.configs),
      ),
    );
  }

  flip() {
    this.only = !this.only;
    keepInUrl({ all: this.only ? null : 1 });
    this.drawConfig();
  }

  update(found) {
    this.found = found;
    const runs = found.runs.map(({ summary }) => summary);
    replace(
      this.numbers,
      head(runs),
      h(
        "tbody",
        {},
        ROWS.map((row) => line(row, runs)),
      ),
    );
    const key = JSON.stringify([found.differences, runs.map((run) => run.name)]);
    if (key !== this.key) this.drawConfig();
    this.key = key;
  }

  drawConfig() {
    const { runs, differences } = this.found;
    const apart = new Map(differences.map(({ name, values }) => [name, values]));
    const all = [...new Set(runs.flatMap(({ config }) => Object.keys(config || {})))];
    const shown = this.only ? [...apart.keys()] : all;
    mark(this.toggle, "aria-pressed", String(this.only));
    const rows = shown.map((name) => {
      const values = runs.map(({ config }) => asText(config?.[name]));
      return h(
        "tr",
        { "data-differs": apart.has(name) || null },
        h("th", { scope: "row" }, named(name)),
        values.map((value) => h("td", { class: value === "–" ? "dim" : null }, value)),
      );
    });
    replace(
      this.configs,
      head(runs.map(({ summary }) => summary)),
      h(
        "tbody",
        {},
        rows.length
          ? rows
          : h("tr", {}, h("td", { class: "nothing", colspan: String(runs.length + 1) }, "The configs are the same.")),
      ),
    );
  }
}

function head(runs) {
  return h(
    "thead",
    {},
    h(
      "tr",
      {},
      h("th", {}),
      runs.map((run, at) =>
        h(
          "th",
          { scope: "col" },
          h("i", { class: "square", style: { "--c": `var(${colourOf(at)})` } }),
          h("a", { href: runUrl(run.name) }, run.name),
        ),
      ),
    ),
  );
}

function line([label, read, format, better], runs) {
  const values = runs.map(read);
  const known = values.filter((value) => typeof value === "number");
  const apart = better && new Set(known.map(format)).size > 1; // what reads the same is not better
  const best = apart ? format(better(...known)) : null;
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, label),
    values.map((value) =>
      h("td", { class: "n", "data-best": (best !== null && format(value) === best) || null }, format(value)),
    ),
  );
}
