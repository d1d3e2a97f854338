// The anatomy of a step: where its time goes, over the run and now, the verdict in words, and what to change.
import { h, replace, say } from "../app/dom.js";
import { milliseconds, percent, phaseName, short } from "../app/format.js";
import { Chart } from "../charts/chart.js";
import { STEP_AXIS } from "./curves.js";
import { section, shareBar } from "./part.js";

const ORDER = [
  "tokenization",
  "data_wait",
  "host_to_device",
  "forward",
  "backward",
  "optimizer",
  "host_sync",
  "sync",
  "evaluation",
  "checkpoint",
  "logging",
  "python",
  "other",
];
const TRIFLE = 0.005; // of a step, never more than that: left out of the picture
const phaseColour = (name) =>
  ORDER.includes(name) ? `--phase-${name}` : name.startsWith("forward") ? "--phase-forward" : "--phase-python";

export class Anatomy {
  constructor(id, { zoom }) {
    this.id = id;
    this.short = "Anatomy of a step";
    this.headline = h("p", { class: "headline", "data-testid": "headline" });
    this.verdict = h("p", { class: "verdict", "data-testid": "verdict" });
    this.bar = h("div", { class: "step-bar" });
    this.phases = h("table", { class: "phases", "data-testid": "phases" });
    this.chart = new Chart({ id: "anatomy", title: "Share of a step, over the run", size: "tall", zoom });
    this.fixes = h("div", { class: "fixes", "data-testid": "fixes" });
    this.tree = h("pre", { "data-testid": "tree" });
    this.missing = h("ul", { class: "missing dim" });
    this.text = h(
      "details",
      { class: "tree" },
      h("summary", {}, "As text, as in the terminal"),
      this.tree,
      this.missing,
    );
    this.element = section(
      id,
      "The anatomy of a step",
      this.headline,
      this.verdict,
      this.bar,
      h("div", { class: "anatomy-grid" }, this.chart.element, this.phases),
      this.fixes,
      this.text,
    );
  }

  update(found, columns, range) {
    const { diagnosis } = found;
    this.drawShares(columns, range);
    const key = JSON.stringify(diagnosis);
    if (key === this.key) return;
    this.key = key;
    say(this.headline, diagnosis ? diagnosis.headline : "");
    say(this.verdict, diagnosis ? diagnosis.verdict : "A verdict needs a few logged steps; it appears here by itself.");
    this.drawStep(diagnosis?.phases || []);
    this.drawFixes(diagnosis);
    this.text.hidden = !diagnosis;
    say(this.tree, diagnosis?.tree || "");
    replace(
      this.missing,
      (diagnosis?.missing || []).map((words) => h("li", {}, words)),
    );
  }

  drawShares(columns, range) {
    const shares = columns.shares || {};
    const names = Object.keys(shares)
      .filter((name) => shares[name].some((value) => value > TRIFLE))
      .sort((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b));
    this.chart.draw({
      label: "Stacked shares of the phases of a step over the run",
      stacked: true,
      series: names.map((name) => ({
        name: phaseName(name),
        x: columns.steps,
        y: shares[name].map((value) => value || 0),
        colour: phaseColour(name),
      })),
      legend: names.map((name) => ({ name: phaseName(name), colour: phaseColour(name), shape: "square" })),
      x: { ...STEP_AXIS, range },
      y: { format: (value) => percent(value, 0), hover: ".1%", range: [0, 1] },
      nothing: "The phases come with the first logged step.",
    });
  }

  drawStep(phases) {
    const total = phases.reduce((sum, phase) => sum + phase.share, 0) || 1;
    const shown = phases.map((phase) => ({
      ...phase,
      colour: phaseColour(phase.name),
      words: `${phaseName(phase.name)}: ${milliseconds(phase.ms)}, ${percent(phase.share)}`,
    }));
    replace(this.bar, shown.length > 0 && shareBar(shown, `A step: ${shown.map((one) => one.words).join("; ")}`));
    const most = Math.max(...shown.map((one) => one.share), 0.01);
    replace(
      this.phases,
      h("caption", {}, "One step, on average"),
      h(
        "tbody",
        {},
        shown.map(({ name, ms, share, colour }) =>
          h(
            "tr",
            { "data-phase": name, "data-trifle": share < 0.005 || null },
            h("th", { scope: "row" }, h("i", { class: "square", style: { "--c": `var(${colour})` } }), phaseName(name)),
            h(
              "td",
              { class: "track" },
              h("i", { style: { width: `${(100 * share) / most}%`, "--c": `var(${colour})` } }),
            ),
            h("td", { class: "n" }, milliseconds(ms)),
            h("td", { class: "n" }, percent(share / total)),
          ),
        ),
      ),
    );
    this.phases.hidden = !shown.length;
  }

  drawFixes(diagnosis) {
    const fixes = diagnosis?.fixes || [];
    const none = diagnosis && !fixes.length ? h("p", { class: "well" }, "No rule finds anything to fix.") : null;
    replace(
      this.fixes,
      none,
      fixes.map((fix, at) =>
        h(
          "article",
          { class: "fix", "data-testid": "fix" },
          h(
            "header",
            {},
            h("span", { class: "rank" }, fix.rank ?? at + 1),
            h("h3", {}, fix.title),
            fix.speedup > 1 &&
              h("span", { class: "gain", title: "Bound by the measured share" }, `up to ${short(fix.speedup)}×`),
          ),
          fix.place && h("p", { class: "place" }, h("code", {}, fix.place)),
          fix.code && h("pre", {}, fix.code),
          fix.evidence && h("p", { class: "dim" }, fix.evidence),
          advice(fix.advice),
        ),
      ),
    );
  }

  close() {
    this.chart.close();
  }
}

/** The first line says what to do; what follows is what to write. */
function advice(words) {
  const [first, ...more] = String(words || "").split("\n");
  return h(
    "div",
    { class: "advice" },
    h("p", {}, first),
    more.filter(Boolean).map((line) => h("code", {}, line)),
  );
}
