// The config, flat and filtered.
import { search, searchField } from "../app/controls.js";
import { h, replace } from "../app/dom.js";
import { section } from "./part.js";

export const asText = (value) =>
  value === null || value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value);

export class Config {
  constructor(id) {
    this.id = id;
    this.short = "Config";
    this.filter = searchField("Filter the config", "Filter the config", "config-filter", "", () => this.draw());
    this.list = h("dl", { class: "config-list", "data-testid": "config" });
    this.element = section(id, "Config", search(this.filter), this.list);
  }

  update({ config }) {
    const key = JSON.stringify(config);
    if (key === this.key) return;
    this.key = key;
    this.config = Object.entries(config || {});
    this.element.hidden = !this.config.length;
    this.draw();
  }

  draw() {
    const wanted = this.filter.value.trim().toLowerCase();
    const shown = this.config.filter(
      ([name, value]) => !wanted || `${name} ${asText(value)}`.toLowerCase().includes(wanted),
    );
    replace(
      this.list,
      shown.map(([name, value]) => h("div", {}, h("dt", {}, named(name)), h("dd", {}, asText(value)))),
      !shown.length && h("p", { class: "nothing" }, "Nothing in the config has that."),
    );
  }
}

/** The dotted part before the name steps back. */
export function named(name) {
  const at = name.lastIndexOf(".") + 1;
  return at ? [h("span", { class: "dim" }, name.slice(0, at)), name.slice(at)] : name;
}
