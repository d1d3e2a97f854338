// One run in the table: made once, then only what changed in it is written.
import { meter } from "../app/controls.js";
import { h, mark, say } from "../app/dom.js";
import { ago, brief, compact, compactTick, loss, mfu, percent, whole } from "../app/format.js";
import { runUrl } from "../app/route.js";
import { sparkline } from "../charts/sparkline.js";

export const COLUMNS = [
  { id: "name", label: "Run", kind: "name" },
  { id: "progress", label: "Progress", kind: "progress" },
  { id: "spark", label: "Loss over the run", kind: "curve" },
  { id: "loss", label: "Loss", kind: "n", title: "Training loss, newest" },
  { id: "val_loss", label: "Val", kind: "n", title: "Validation loss, newest" },
  { id: "best_val_loss", label: "Best", kind: "n", title: "Best validation loss" },
  { id: "tokens_per_second", label: "Tokens/s", kind: "n" },
  { id: "mfu", label: "MFU", kind: "n", title: "Share of the machine's peak arithmetic that the model used" },
  { id: "data_wait_share", label: "Data wait", kind: "n", title: "Share of a step spent waiting for data" },
  { id: "started", label: "Started", kind: "n when" },
];

const steps = (number) => (number < 1e5 ? whole(number) : compactTick(number));

/** Words for a share of waiting: nothing to see, look at it, it hurts. */
export const waitLevel = (share) => (share >= 0.2 ? "bad" : share >= 0.05 ? "warn" : null);
export const isStale = (run, now = Date.now() / 1000) =>
  run.status === "running" && run.updated && now - run.updated > 120;

export class RunRow {
  constructor(run, { open, pick }) {
    const name = run.name;
    this.box = h("input", {
      type: "checkbox",
      "aria-label": `Select ${name} to compare`,
      "data-testid": "pick",
      onchange: () => pick(name, this.box.checked),
    });
    this.dot = h("i", { class: "dot" });
    this.status = h("span", { class: "hidden" });
    this.link = h("a", { href: runUrl(name), class: "title", title: name }, name);
    this.about = h("span", { class: "about dim" });
    this.meter = meter("Progress");
    this.left = h("span", {});
    this.right = h("span", {});
    this.curve = sparkline();
    this.cells = Object.fromEntries(
      COLUMNS.slice(3).map(({ id, kind, label }) => [id, h("td", { class: kind, "data-label": label })]),
    );
    this.element = h(
      "tr",
      { "data-testid": "run", "data-run": name },
      h("td", { class: "pick" }, h("label", {}, this.box)),
      h("td", { class: "name" }, h("div", {}, this.dot, this.status, this.link), this.about),
      h("td", { class: "progress" }, this.meter.element, h("div", { class: "under dim" }, this.left, this.right)),
      h("td", { class: "curve" }, this.curve.element),
      Object.values(this.cells),
    );
    this.element.addEventListener(
      "click",
      (event) => !event.target.closest("a,input,label,button") && !getSelection().toString() && open(name),
    );
  }

  update(run, picked) {
    const stale = isStale(run);
    mark(this.element, "data-status", stale ? "stale" : run.status);
    mark(this.element, "aria-selected", String(picked));
    if (this.box.checked !== picked) this.box.checked = picked;
    say(this.status, stale ? "silent " : `${run.status} `);
    mark(this.dot, "title", stale ? "running, but silent" : run.problem || run.status);
    say(
      this.about,
      [[run.model, run.size].filter(Boolean).join(" "), (run.data || []).join(", ")].filter(Boolean).join(" · ") ||
        run.problem,
    );
    mark(this.about, "title", run.problem || run.title);
    this.progress(run);
    this.curve.draw(run.spark);
    this.numbers(run);
  }

  progress(run) {
    const share = run.steps ? Math.min(1, (run.step || 0) / run.steps) : 0;
    this.meter.set(share);
    say(this.left, run.steps ? `${steps(run.step || 0)} / ${steps(run.steps)}` : "no steps yet");
    const took = run.started && run.updated ? `in ${brief(run.updated - run.started)}` : "";
    say(
      this.right,
      run.status === "running"
        ? run.eta_seconds
          ? `${brief(run.eta_seconds)} left`
          : percent(share)
        : run.status === "finished"
          ? took
          : run.steps
            ? run.status
            : "",
    );
  }

  numbers(run) {
    const { cells } = this;
    say(cells.loss, loss(run.loss));
    say(cells.val_loss, loss(run.val_loss));
    say(cells.best_val_loss, loss(run.best_val_loss));
    say(cells.tokens_per_second, compact(run.tokens_per_second));
    say(cells.mfu, mfu(run.mfu));
    say(cells.data_wait_share, percent(run.data_wait_share));
    mark(cells.data_wait_share, "data-level", waitLevel(run.data_wait_share));
    say(cells.started, ago(run.started));
  }
}
