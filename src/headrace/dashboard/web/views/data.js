// All datasets: what is ready, what is being prepared and how far it is.
import { get } from "../app/api.js";
import { h, nextFrame, replace } from "../app/dom.js";
import { ago, bytes, compact, count, percent, whole } from "../app/format.js";
import { page, title } from "../app/look.js";
import { dataUrl } from "../app/route.js";
import { STATUS, statePill } from "./dataset_parts.js";
import { pace } from "./runs_parts.js";
import { noData } from "./states.js";

export function openData({ root, found, go }) {
  return new Data(root, found, go);
}
openData.api = () => "/api/runs";

class Data {
  constructor(root, found, go) {
    Object.assign(this, { root, found, go, at: -1 });
    this.datasets = new Map((found.datasets || []).map((one) => [one.name, one]));
    this.stream = () => "/events?view=runs";
    this.update = () => this.draw();
    const move = (by) => () => {
      const cards = [...root.querySelectorAll(".dataset-card")];
      this.at = Math.max(0, Math.min(cards.length - 1, this.at + by));
      cards[this.at]?.focus();
      return true;
    };
    this.keys = { j: move(1), k: move(-1) };
    page("data", found.data_folder);
    this.draw();
  }

  draw() {
    const all = [...this.datasets.values()];
    const busy = all.filter((one) => one.state === "preparing").length;
    title(busy ? `${busy} being prepared · Data` : "Data", busy ? "running" : null);
    const key = JSON.stringify(all);
    if (key === this.key) return;
    this.key = key;
    const focused = document.activeElement?.dataset?.dataset;
    if (!all.length) replace(this.root, noData(this.found.data_folder));
    else
      replace(
        this.root,
        h(
          "div",
          { class: "bar" },
          h("h1", {}, "Data"),
          h("span", { class: "dim count" }, count(all.length, "dataset")),
        ),
        h("div", { class: "dataset-grid", "data-testid": "datasets" }, all.map(card)),
      );
    if (focused)
      [...this.root.querySelectorAll(".dataset-card")].find((one) => one.dataset.dataset === focused)?.focus();
  }

  event(kind, data) {
    if (kind !== "runs") return;
    for (const one of data.datasets || []) this.datasets.set(one.name, one);
    if (data.gone?.length) this.renew();
    nextFrame(this.update);
  }

  async renew() {
    const found = await get("/api/runs").catch(() => null);
    if (!found) return;
    this.datasets = new Map((found.datasets || []).map((one) => [one.name, one]));
    nextFrame(this.update);
  }
}

function card(one) {
  const facts = [
    ["documents", compact(one.documents)],
    ["chunks", whole(one.chunks)],
    ["size", bytes(one.bytes)],
    ["shards", whole(one.shards)],
  ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
  const about = { href: dataUrl(one.name), "data-dataset": one.name, "data-status": STATUS[one.state] };
  return h(
    "a",
    { class: "dataset-card", "data-testid": "dataset", ...about },
    h("header", {}, h("h2", {}, one.name), statePill(one.state)),
    h("p", { class: "big" }, compact(one.tokens), h("small", {}, " tokens")),
    one.state === "ready"
      ? h("p", { class: "dim" }, `${one.tokenizer || "no tokenizer"} · ${ago(one.updated)}`)
      : going(one),
    h("dl", {}, facts),
  );
}

function going(one) {
  const words = one.state === "stopped" ? "run the same command again" : pace(one);
  const meter = h("span", { class: "meter" }, h("i", { style: { width: percent(one.share ?? 0, 1) } }));
  const under = h("span", { class: "under dim" }, h("span", {}, percent(one.share ?? 0)), h("span", {}, words));
  return h("div", { class: "going" }, meter, under);
}
