// One run: its head, its curves, the anatomy of a step and all that was recorded, following it while it runs.
import { calledOff, get, latest } from "../app/api.js";
import { append, appendEvals } from "../app/columns.js";
import { h, nextFrame, replace } from "../app/dom.js";
import { loss, percent } from "../app/format.js";
import { page, title } from "../app/look.js";
import { keepInUrl, runApi } from "../app/route.js";
import { Anatomy } from "./anatomy.js";
import { Config } from "./config.js";
import { Curves } from "./curves.js";
import { RunHead } from "./head.js";
import { Hardware, Metrics } from "./hardware.js";
import { Log } from "./log.js";
import { Mix } from "./mix.js";
import { Samples } from "./samples.js";

const POINTS = 1500;

export function openRun({ root, route, found }) {
  return new Run(root, route, found);
}
openRun.api = (route) => runAddress(route.name, windowOf(route.query));

const runAddress = (name, range) =>
  `${runApi(name)}?points=${POINTS}${range ? `&from=${range[0]}&to=${range[1]}` : ""}`;

function windowOf(query) {
  const [from, to] = [Number(query.get("from") ?? NaN), Number(query.get("to") ?? NaN)];
  return Number.isFinite(from) && Number.isFinite(to) && from < to ? [from, to] : null;
}

class Run {
  constructor(root, route, found) {
    this.name = route.name;
    this.found = found;
    this.window = windowOf(route.query);
    this.ask = latest();
    const zoom = (range) => this.zoom(range);
    this.head = new RunHead();
    const parts = {
      curves: Curves,
      anatomy: Anatomy,
      hardware: Hardware,
      mix: Mix,
      metrics: Metrics,
      samples: Samples,
      config: Config,
      log: Log,
    };
    this.parts = Object.entries(parts).map(([id, Part]) => new Part(id, { route, zoom }));
    this.keys = Object.assign({}, ...this.parts.map((part) => part.keys));
    page("runs", null);
    this.contents = h("nav", { class: "contents", "aria-label": "Sections" });
    replace(
      root,
      this.head.element,
      this.contents,
      this.parts.map((part) => part.element),
    );
    this.stream = () =>
      `/events?view=run&name=${encodeURIComponent(this.name)}&cursor=${encodeURIComponent(this.found.cursor || "")}`;
    this.update = () => this.refresh();
    this.timer = setInterval(() => this.head.update(this.found), 1000);
    // An address with a window has the answer of that window; the whole run is asked for behind it.
    if (this.window) this.seen = found.columns;
    this.refresh();
    if (this.window) this.renew();
  }

  refresh() {
    const { found } = this;
    this.head.update(found);
    for (const part of this.parts) part.update(found, this.seen || found.columns, this.window);
    this.links();
    this.tab();
  }

  links() {
    const shown = this.parts.filter((part) => !part.element.hidden);
    const key = shown.map((part) => part.id).join();
    if (key === this.linkKey) return;
    this.linkKey = key;
    replace(
      this.contents,
      shown.map((part) => h("a", { href: `#${part.id}`, "data-testid": `to-${part.id}` }, part.short)),
    );
  }

  tab() {
    const { summary } = this.found;
    const numbers =
      summary.status === "running" && summary.steps
        ? `${percent(summary.step / summary.steps, 0)} ${loss(summary.loss)} · `
        : summary.status === "finished"
          ? ""
          : `${summary.status} · `;
    title(`${numbers}${summary.name}`, summary.status);
  }

  /** A window of steps in full resolution, over all charts; null shows the whole run again. */
  async zoom(range) {
    this.window = range && [Math.max(0, Math.floor(range[0])), Math.ceil(range[1])];
    keepInUrl({ from: this.window?.[0] ?? null, to: this.window?.[1] ?? null });
    if (!this.window) this.seen = null;
    nextFrame(this.update);
    if (!this.window) return;
    try {
      const near = await this.ask(runAddress(this.name, this.window));
      if (!this.window) return;
      this.seen = near.columns;
      nextFrame(this.update);
    } catch (error) {
      if (!calledOff(error)) console.warn(error.message);
    }
  }

  event(kind, data) {
    if (data.name !== this.name) return;
    if (kind === "reset" || kind === "full")
      this.renew(); // gone back, or read to its end by now
    else if (kind === "diagnosis") this.found.diagnosis = data.diagnosis;
    else if (kind === "points") this.take(data);
    nextFrame(this.update);
  }

  take(data) {
    const { found } = this;
    found.cursor = data.cursor ?? found.cursor;
    if (data.columns) append(found.columns, data.columns);
    appendEvals(found.evals, data.evals);
    if (data.summary) found.summary = data.summary;
    if (data.mix) found.mix = data.mix;
    if (data.samples?.length) found.samples = joined(found.samples, data.samples, (one) => JSON.stringify(one), 30);
    if (data.messages?.length)
      found.messages = joined(found.messages, data.messages, (one) => `${one.t} ${one.text}`, 50);
    if (data.checkpoints) found.checkpoints = data.checkpoints;
    if (found.columns.steps.length > 2 * POINTS) this.renew();
  }

  async renew() {
    const found = await get(runAddress(this.name, null)).catch(() => null);
    if (!found) return;
    this.found = found;
    nextFrame(this.update);
  }

  close() {
    clearInterval(this.timer);
    for (const part of this.parts) part.close?.();
  }
}

function joined(old, fresh, key, most) {
  const all = new Map([...old, ...fresh].map((one) => [key(one), one]));
  return [...all.values()].slice(-most);
}
