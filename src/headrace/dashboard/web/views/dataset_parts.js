// Parts of the page of a dataset that do not change: its head, lengths of documents, files.
import { crumbs, table } from "../app/controls.js";
import { h } from "../app/dom.js";
import { bytes, compact, compactTick, count, whole } from "../app/format.js";
import { asText } from "./config.js";
import { section } from "./part.js";

export const STATUS = { ready: "finished", preparing: "running", stopped: "stopped" };
const MOST_SHARDS = 200; // rows; a large dataset has thousands
const NAMED = { p50: "median" };

export const statePill = (state) => h("span", { class: "pill", "data-status": STATUS[state] }, h("i"), state);

export function datasetHead(dataset) {
  const tiles = [
    ["Tokens", compact(dataset.tokens)],
    ["Documents", compact(dataset.documents)],
    ["Chunks", whole(dataset.chunks)],
    ["Chunk size", whole(dataset.chunk_size)],
    ["On disk", bytes(dataset.bytes)],
    ["Shards", whole(dataset.shards)],
  ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)));
  return h(
    "header",
    { class: "run-head", "data-testid": "dataset-head" },
    crumbs("/data", "Data"),
    h("div", { class: "line" }, h("h1", { "data-testid": "title" }, dataset.name), statePill(dataset.state)),
    h("p", { class: "dim about" }, dataset.tokenizer ? `tokenizer ${dataset.tokenizer}` : "\u00a0"),
    dataset.problem && h("p", { class: "problem", "data-level": "bad", "data-testid": "problem" }, dataset.problem),
    dataset.state === "ready" && h("dl", { class: "numbers" }, tiles),
  );
}

/** Edges that grow by a factor want an axis that does so too. */
const grows = (edges) => edges.length > 3 && edges[edges.length - 1] / Math.max(1, edges[1]) > 50;

export function lengthBars(lengths) {
  const { edges = [], counts = [] } = lengths || {};
  const places = edges.map((edge) => Math.max(edge, 1));
  const words = counts.map(
    (number, at) => `${count(number, "document")} of ${whole(edges[at])} to ${whole(edges[at + 1])} tokens`,
  );
  return {
    label: "Histogram of the lengths of documents",
    bars: true,
    series: counts.length ? [{ kind: "bars", x: places, edges: places, y: counts, words, colour: "--series-1" }] : [],
    x: { format: compactTick, log: grows(edges) },
    y: { format: compactTick, zero: true },
    nothing: "Lengths are known when the dataset is ready.",
  };
}

export function lengthTable(lengths) {
  const words = (name) => NAMED[name] || name.replace(/^p(\d+)$/, "$1% are shorter than");
  const among = Object.entries(lengths?.percentiles || {}).map(([name, value]) => [words(name), value]);
  if (!among.length) return null;
  const all = [["shortest", lengths.shortest], ...among, ["longest", lengths.longest], ["mean", lengths.mean]];
  const known = all.filter(([, value]) => value !== undefined);
  const rows = known.map(([name, value]) =>
    h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "n" }, whole(value))),
  );
  return h("table", { class: "plain percentiles" }, h("caption", {}, "Tokens in a document"), h("tbody", {}, rows));
}

export function files({ splits, shards = [], metadata }) {
  const ofSplit = (one) => [one.name, whole(one.tokens), whole(one.documents), whole(one.chunks)];
  const ofShard = (one) => [one.name, whole(one.tokens), whole(one.documents), bytes(one.bytes)];
  const entry = ([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, asText(value)));
  return section(
    "files",
    "Splits, shards and metadata",
    table(["Split", "Tokens", "Documents", "Chunks"], splits.map(ofSplit), "splits"),
    table(["Shard", "Tokens", "Documents", "Size"], shards.slice(0, MOST_SHARDS).map(ofShard), "shards"),
    shards.length > MOST_SHARDS && h("p", { class: "dim" }, `and ${whole(shards.length - MOST_SHARDS)} more`),
    h(
      "details",
      { class: "tree" },
      h("summary", {}, "Metadata"),
      h("dl", { class: "config-list" }, Object.entries(metadata || {}).map(entry)),
    ),
  );
}
