// The head of a run: what it is, how far it is, and its numbers of this moment.
import { crumbs, meter } from "../app/controls.js";
import { h, mark, replace, say } from "../app/dom.js";
import { ago, clock, compact, duration, loss, mfu, percent, whole } from "../app/format.js";
import { pill } from "../app/look.js";
import { isStale, waitLevel } from "./run_row.js";

const NUMBERS = [
  ["loss", "Loss"],
  ["val_loss", "Validation"],
  ["tokens_per_second", "Tokens/s"],
  ["mfu", "MFU"],
  ["data_wait_share", "Data wait"],
  ["tokens", "Tokens seen"],
  ["time", "Time left"],
];

export class RunHead {
  constructor() {
    this.title = h("h1", { "data-testid": "title" });
    this.status = h("span", { class: "slot" });
    this.about = h("p", { class: "dim about" });
    this.problem = h("p", { class: "problem", hidden: true, "data-testid": "problem" });
    this.meter = meter("Progress", "wide");
    this.left = h("span");
    this.right = h("span");
    const tile = ([id, label]) => [
      id,
      {
        label: h("dt", {}, label),
        value: h("dd", { "data-testid": `number-${id}` }),
        note: h("dd", { class: "note" }),
      },
    ];
    this.tiles = Object.fromEntries(NUMBERS.map(tile));
    const tiles = Object.values(this.tiles).map(({ label, value, note }) => h("div", {}, label, value, note));
    this.element = h(
      "header",
      { class: "run-head", "data-testid": "run-head" },
      crumbs("/", "Runs"),
      h("div", { class: "line" }, this.title, this.status),
      this.about,
      this.problem,
      this.meter.element,
      h("div", { class: "under dim" }, this.left, this.right),
      h("dl", { class: "numbers" }, tiles),
    );
  }

  update({ summary: run, system, evals }) {
    say(this.title, run.name);
    const stale = isStale(run);
    const shown = `${run.status} ${stale}`;
    if (shown !== this.shown) replace(this.status, pill(stale ? "stale" : run.status));
    this.shown = shown;
    say(
      this.about,
      [
        [run.model, run.size].filter(Boolean).join(" "),
        run.parameters && `${compact(run.parameters)} parameters`,
        (run.data || []).join(", "),
        run.device,
        system?.host,
      ]
        .filter(Boolean)
        .join(" · "),
    );
    const silence = duration(Date.now() / 1000 - run.updated);
    const trouble = stale ? `Nothing was written for ${silence}: it computes, sleeps, or was killed.` : run.problem;
    this.problem.hidden = !trouble;
    say(this.problem, trouble);
    mark(this.problem, "data-level", run.status === "failed" ? "bad" : "warn");
    this.progress(run);
    this.numbers(run, evals);
  }

  progress(run) {
    const share = run.steps ? Math.min(1, (run.step || 0) / run.steps) : 0;
    mark(this.element, "data-status", run.status);
    this.meter.set(share);
    say(
      this.left,
      run.steps
        ? `step ${whole(run.step || 0)} of ${whole(run.steps)} · ${percent(share, share < 1 && share > 0.995 ? 1 : 0)}`
        : "no step yet",
    );
    say(
      this.right,
      [run.started && `started ${clock(run.started)}`, run.updated && `updated ${ago(run.updated)}`]
        .filter(Boolean)
        .join(" · "),
    );
  }

  numbers(run, evals) {
    const took = run.started && run.updated ? run.updated - run.started : null;
    const running = run.status === "running";
    this.tile("loss", loss(run.loss), run.loss ? `perplexity ${compact(Math.exp(Math.min(run.loss, 30)))}` : "");
    this.tile(
      "val_loss",
      loss(run.val_loss),
      run.best_val_loss === null || run.best_val_loss === undefined
        ? ""
        : run.best_val_loss === run.val_loss
          ? "the best so far"
          : `best ${loss(run.best_val_loss)}`,
    );
    this.tile(
      "tokens_per_second",
      compact(run.tokens_per_second),
      run.tokens_per_second ? `${compact(run.tokens_per_second * 86400)} a day` : "",
    );
    const peak = run.mfu > 1 ? "peak measured low" : "of peak arithmetic";
    this.tile("mfu", mfu(run.mfu), run.mfu ? peak : "");
    this.tile("data_wait_share", percent(run.data_wait_share), "of a step");
    mark(this.tiles.data_wait_share.value, "data-level", waitLevel(run.data_wait_share));
    this.tile(
      "tokens",
      compact(run.tokens),
      evals?.accuracy?.length ? `next token right ${percent(evals.accuracy[evals.accuracy.length - 1])}` : "",
    );
    say(this.tiles.time.label, running ? "Time left" : "Took");
    this.tile("time", duration(running ? run.eta_seconds : took), running ? `${duration(took)} so far` : "");
  }

  tile(id, value, note) {
    say(this.tiles[id].value, value);
    say(this.tiles[id].note, note || "\u00a0");
  }
}
