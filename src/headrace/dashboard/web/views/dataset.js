// One dataset: its numbers, the work that makes it, how long its documents are, which tokens it has, and its text.
import { get } from "../app/api.js";
import { h, nextFrame, replace } from "../app/dom.js";
import { percent } from "../app/format.js";
import { page, title } from "../app/look.js";
import { dataApi } from "../app/route.js";
import { Chart } from "../charts/chart.js";
import { Chunk } from "./chunk.js";
import { STATUS, datasetHead, files, lengthBars, lengthTable } from "./dataset_parts.js";
import { Frequency } from "./frequency.js";
import { section } from "./part.js";
import { Prepare } from "./prepare.js";

export function openDataset({ root, route, found }) {
  return new Dataset(root, route, found);
}
openDataset.api = (route) => dataApi(route.name);

const PARTS = [
  ["browse", "Text"],
  ["lengths", "Lengths"],
  ["frequency", "Tokens"],
  ["files", "Files"],
];

class Dataset {
  constructor(root, route, found) {
    Object.assign(this, { root, route, found, name: route.name });
    this.stream = () => `/events?view=data&name=${encodeURIComponent(this.name)}`;
    this.update = () => this.draw();
    this.prepare = new Prepare("prepare");
    this.lengths = new Chart({ id: "lengths", title: "Length of documents", size: "middle" });
    page("data", null);
    this.draw();
  }

  get keys() {
    return this.chunk?.keys;
  }

  draw() {
    const { dataset } = this.found;
    const share = this.found.prepare?.share ?? dataset.share;
    title(`${dataset.state === "preparing" ? `${percent(share, 0)} · ` : ""}${dataset.name}`, STATUS[dataset.state]);
    if (this.state !== dataset.state) this.build();
    this.state = dataset.state;
    this.prepare.update(this.found.prepare, dataset);
    this.lengths.draw(lengthBars(this.found.lengths));
  }

  build() {
    const { dataset, splits } = this.found;
    const ready = dataset.state === "ready" && splits?.length;
    this.chunk = ready
      ? new Chunk("browse", { route: this.route, name: this.name, splits, size: dataset.chunk_size })
      : null;
    this.frequency?.close();
    this.frequency = ready ? new Frequency("frequency", { name: this.name, split: splits[0].name }) : null;
    const links = PARTS.map(([id, words]) => h("a", { href: `#${id}` }, words));
    const grid = h("div", { class: "anatomy-grid" }, this.lengths.element, lengthTable(this.found.lengths));
    replace(
      this.root,
      datasetHead(dataset),
      ready && h("nav", { class: "contents", "aria-label": "Sections" }, links),
      this.prepare.element,
      this.chunk?.element,
      ready && section("lengths", "Lengths", grid),
      this.frequency?.element,
      ready && files(this.found),
    );
  }

  event(kind, data) {
    if (kind === "prepare" && data.name === this.name) {
      const was = this.found.prepare?.state;
      this.found.prepare = data.prepare;
      if (was !== data.prepare?.state) this.renew();
    } else if (kind === "reset" && data.name === this.name) this.renew();
    nextFrame(this.update);
  }

  async renew() {
    const found = await get(dataApi(this.name)).catch(() => null);
    if (!found) return;
    this.found = found;
    nextFrame(this.update);
  }

  close() {
    this.lengths.close();
    this.prepare.close();
    this.frequency?.close();
  }
}
