// Text samples: prompt, what stands there, what the model wrote, with the part marked in which they differ.
import { difference } from "../app/difference.js";
import { button, slider } from "../app/controls.js";
import { h, mark, replace, say } from "../app/dom.js";
import { count, whole } from "../app/format.js";
import { keepInUrl } from "../app/route.js";
import { section } from "./part.js";

export class Samples {
  constructor(id, { route }) {
    this.id = id;
    this.short = "Samples";
    this.step = Number(route.query.get("sample")) || null; // null follows the newest
    this.where = h("output", { class: "where", "data-testid": "sample-step" });
    this.slider = slider("Step of the samples", { min: "0", test: "sample-slider" }, (at) => this.to(at));
    const arrow = (words, label, by, test) =>
      button("icon", words, () => this.move(by), { "aria-label": label, "data-testid": test });
    this.before = arrow("‹", "Earlier samples", -1, "sample-previous");
    this.after = arrow("›", "Later samples", 1, "sample-next");
    this.tools = h("div", { class: "tools" }, this.before, this.slider, this.after, this.where);
    this.list = h("div", { class: "sample-list" });
    this.element = section(id, "Text samples", this.tools, this.list);
    this.keys = { ArrowLeft: () => this.near() && this.move(-1), ArrowRight: () => this.near() && this.move(1) };
  }

  /** The arrows are for what is on the screen. */
  near() {
    const { top, bottom } = this.element.getBoundingClientRect();
    return this.steps?.length > 1 && top < innerHeight * 0.8 && bottom > 100;
  }

  update({ samples }) {
    this.samples = samples || [];
    this.element.hidden = !this.samples.length;
    this.steps = [...new Set(this.samples.map((one) => one.step))].sort((a, b) => a - b);
    this.draw();
  }

  at() {
    const found = this.step === null ? -1 : this.steps.indexOf(this.step);
    return found < 0 ? this.steps.length - 1 : found;
  }

  to(at) {
    const last = at >= this.steps.length - 1;
    this.step = last ? null : this.steps[Math.max(0, at)];
    keepInUrl({ sample: this.step });
    this.draw();
    return true;
  }

  move(by) {
    return this.to(this.at() + by);
  }

  draw() {
    const at = this.at();
    const shown = this.samples.filter((one) => one.step === this.steps[at]);
    this.tools.hidden = this.steps.length < 2;
    mark(this.slider, "max", this.steps.length - 1);
    this.slider.value = String(at);
    this.before.disabled = at <= 0;
    this.after.disabled = at >= this.steps.length - 1;
    say(
      this.where,
      `step ${whole(this.steps[at])} · ${count(shown.length, "sample")}${this.step === null ? " · newest" : ""}`,
    );
    const key = JSON.stringify(shown);
    if (key === this.key) return;
    this.key = key;
    replace(this.list, shown.map(card));
  }
}

function card({ step, prompt, expected, predicted }) {
  const [want, got] = difference(expected || "", predicted || "");
  const part = (words) =>
    words.map(({ text, same }) => (same ? h("span", { class: "same" }, text) : h("mark", {}, text)));
  return h(
    "article",
    { class: "sample", "data-testid": "sample", "data-step": step },
    h("div", { class: "prompt" }, h("h3", {}, "Prompt"), h("p", {}, prompt)),
    h(
      "div",
      { class: "pair" },
      h("div", { class: "expected" }, h("h3", {}, "Expected"), h("p", {}, expected ? part(want) : "–")),
      h("div", { class: "predicted" }, h("h3", {}, "Predicted"), h("p", {}, predicted ? part(got) : "–")),
    ),
  );
}
