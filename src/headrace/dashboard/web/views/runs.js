// All runs: a table that follows them, with a filter, an order and a selection to compare.
import { get } from "../app/api.js";
import { button, search, searchField } from "../app/controls.js";
import { h, mark, nextFrame, replace, say } from "../app/dom.js";
import { count } from "../app/format.js";
import { page, title } from "../app/look.js";
import { matches, parse, sorted, statusIn, withStatus } from "../app/query.js";
import { compareUrl, keepInUrl, runUrl } from "../app/route.js";
import { COLUMNS, RunRow } from "./run_row.js";
import { chips, countStatuses, selected, strip } from "./runs_parts.js";
import { noRuns } from "./states.js";

const SMALL_FIRST = ["name", "loss", "val_loss", "best_val_loss"];
const SLOW = 15_000; // how often "3 min ago" is looked at
const chosen = new Set(); // survives a visit to a run

export function openRuns({ root, route, found, go }) {
  const view = new Runs(root, route, found, go);
  view.draw();
  return view;
}
openRuns.api = () => "/api/runs";

class Runs {
  constructor(root, route, found, go) {
    Object.assign(this, { root, go, found });
    this.runs = new Map(found.runs.map((run) => [run.name, run]));
    this.datasets = new Map((found.datasets || []).map((one) => [one.name, one]));
    this.query = route.query.get("q") || "";
    const sort = route.query.get("sort") || "-started";
    this.sort = { column: sort.replace(/^-/, ""), down: sort.startsWith("-") };
    this.rows = new Map();
    this.at = -1;
    this.stream = () => "/events?view=runs";
    this.update = () => this.refresh();
    this.timer = setInterval(() => nextFrame(this.update), SLOW);
    this.keys = this.bindings();
  }

  draw() {
    page("runs", this.found.folder);
    this.count = h("span", { class: "dim count", "data-testid": "count" });
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Status" });
    const hint = "Filter: words, status:running, model:ten";
    this.filter = searchField("Filter runs", hint, "filter", this.query, (text) => this.search(text));
    this.preparing = h("div", { class: "preparing", "data-testid": "preparing" });
    this.body = h("tbody");
    const all = button("link", "Show all", () => this.search(""));
    this.nothing = h("p", { class: "nothing", hidden: true }, "No run matches the filter. ", all);
    this.table = h("table", { class: "runs-table", "data-testid": "runs" }, h("thead", {}, this.heads()), this.body);
    this.tray = h("div", { class: "tray", role: "region", "aria-label": "Selected runs", "data-testid": "tray" });
    const bar = h("div", { class: "bar" }, h("h1", {}, "Runs"), this.count, this.chips, search(this.filter));
    this.full = [bar, this.preparing, this.table, this.nothing, this.tray];
    this.refresh();
  }

  heads() {
    const cells = COLUMNS.map(({ id, label, kind, title: words }) => {
      const more = { class: kind, scope: "col", "data-column": id, "data-testid": `sort-${id}` };
      return h("th", more, id === "spark" ? label : button(null, label, () => this.order(id), { title: words }));
    });
    return h("tr", {}, h("th", { class: "pick", scope: "col" }, h("span", { class: "hidden" }, "Select")), cells);
  }

  refresh() {
    if (!this.runs.size) {
      title("Runs");
      if (this.shown !== "empty") replace(this.root, this.strip(), noRuns(this.found.folder));
      this.shown = "empty";
      return;
    }
    if (this.shown !== "table") replace(this.root, this.full);
    this.shown = "table";
    this.list();
    this.strip();
    this.selection();
  }

  list() {
    const [terms, { column, down }] = [parse(this.query), this.sort];
    const kept = [...this.runs.values()].filter((run) => matches(run, terms));
    this.listed = sorted(kept, column, down);
    const wanted = this.listed.map((run) => this.row(run).element);
    const now = this.body.children;
    if (wanted.length !== now.length || wanted.some((row, at) => now[at] !== row)) this.body.replaceChildren(...wanted);
    this.table.hidden = !wanted.length;
    this.nothing.hidden = wanted.length > 0;
    this.numbers(wanted.length);
    for (const th of this.table.querySelectorAll("th[data-column]")) {
      mark(th, "aria-sort", th.dataset.column === column ? (down ? "descending" : "ascending") : null);
    }
  }

  row(run) {
    let row = this.rows.get(run.name);
    if (!row) {
      row = new RunRow(run, { open: (name) => this.go(runUrl(name)), pick: (name, on) => this.pick(name, on) });
      this.rows.set(run.name, row);
    }
    row.update(run, chosen.has(run.name));
    return row;
  }

  numbers(shown) {
    const all = [...this.runs.values()];
    const running = all.filter((run) => run.status === "running").length;
    say(this.count, shown === all.length ? count(all.length, "run") : `${shown} of ${all.length}`);
    title(running ? `${running} running · Runs` : "Runs", running ? "running" : null);
    const [now, counted] = [statusIn(this.query), countStatuses(all)];
    const key = JSON.stringify([counted, now]);
    if (key === this.chipKey) return;
    this.chipKey = key;
    replace(
      this.chips,
      chips(counted, now, (status) => this.search(withStatus(this.query, status))),
    );
  }

  strip() {
    const busy = [...this.datasets.values()].filter((one) => one.state === "preparing");
    return replace(this.preparing, busy.map(strip));
  }

  search(text) {
    this.query = text;
    if (this.filter.value !== text) this.filter.value = text;
    keepInUrl({ q: text.trim() });
    this.at = -1;
    this.focus();
    nextFrame(this.update);
  }

  order(column) {
    const down = this.sort.column === column ? !this.sort.down : !SMALL_FIRST.includes(column);
    this.sort = { column, down };
    keepInUrl({ sort: column === "started" && down ? null : `${down ? "-" : ""}${column}` });
    nextFrame(this.update);
  }

  pick(name, on) {
    if (on) chosen.add(name);
    else chosen.delete(name);
    nextFrame(this.update);
  }

  selection() {
    for (const name of chosen) if (!this.runs.has(name)) chosen.delete(name);
    const key = [...chosen].join("\n");
    if (key === this.trayKey) return;
    this.trayKey = key;
    this.tray.toggleAttribute("data-open", chosen.size > 0);
    replace(
      this.tray,
      selected([...chosen], () => this.clear()),
    );
  }

  clear() {
    chosen.clear();
    nextFrame(this.update);
  }

  bindings() {
    const move = (by) => () => {
      this.at = Math.max(0, Math.min((this.listed?.length || 1) - 1, this.at + by));
      this.focus(true);
      return true;
    };
    const here = () => this.listed?.[this.at];
    return {
      j: move(1),
      k: move(-1),
      Enter: (event) => !event.target.closest("a,button,input") && here() && (this.go(runUrl(here().name)), true),
      x: () => here() && (this.pick(here().name, !chosen.has(here().name)), true),
      c: () => chosen.size > 1 && (this.go(compareUrl([...chosen])), true),
      Escape: () => chosen.size > 0 && (this.clear(), true),
    };
  }

  focus(scroll = false) {
    (this.listed || []).forEach((run, at) =>
      mark(this.rows.get(run.name).element, "data-here", at === this.at || null),
    );
    if (scroll) this.body.children[this.at]?.scrollIntoView({ block: "nearest" });
  }

  event(kind, data) {
    if (kind !== "runs") return;
    for (const run of data.runs || []) this.runs.set(run.name, run);
    for (const one of data.datasets || []) this.datasets.set(one.name, one);
    if (data.gone?.length) this.renew(); // a name may be that of a run and of a dataset
    nextFrame(this.update);
  }

  async renew() {
    const found = await get("/api/runs").catch(() => null);
    if (!found) return;
    this.found = found;
    this.runs = new Map(found.runs.map((run) => [run.name, run]));
    this.datasets = new Map((found.datasets || []).map((one) => [one.name, one]));
    nextFrame(this.update);
  }

  close() {
    clearInterval(this.timer);
  }
}
