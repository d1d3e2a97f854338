// The few controls that views share.
import { h, mark } from "./dom.js";

export const button = (kind, words, press, more = {}) =>
  h("button", { type: "button", class: kind, onclick: press, ...more }, words);

export function slider(label, about, move) {
  const { test, ...more } = about;
  const field = h("input", { type: "range", step: "1", "aria-label": label, "data-testid": test, ...more });
  field.addEventListener("input", () => move(Number(field.value)));
  return field;
}

export const smoothing = (value, move) =>
  slider("Smoothing", { min: "0", max: "0.99", step: "0.01", value: String(value), test: "smoothing" }, move);

export function searchField(label, placeholder, test, value, change) {
  const more = { autocomplete: "off", spellcheck: "false", "data-filter": true, "data-testid": test };
  const field = h("input", { type: "search", class: "filter", value, placeholder, "aria-label": label, ...more });
  field.addEventListener("input", () => change(field.value));
  return field;
}

export const search = (field) => h("label", { class: "search" }, field, h("kbd", {}, "/"));

export function choice(label, options, now, change) {
  const select = h("select", { "aria-label": label, "data-testid": `chunk-${label}` });
  select.append(...options.map((value) => h("option", { value: String(value), selected: value === now }, value)));
  select.addEventListener("change", () => change(select.value));
  return h("label", {}, label, select);
}

export const crumbs = (href, words) =>
  h("p", { class: "crumbs" }, h("a", { href }, words), h("span", { "aria-hidden": "true" }, "/"));

/** Rows of text first and numbers after; `heads` says how many columns there are. */
export function table(heads, rows, test) {
  const cell = (tag, words, at) => h(tag, { scope: tag === "th" ? "col" : null, class: at ? "n" : null }, words);
  const line = (tag, words) =>
    h(
      "tr",
      {},
      words.map((one, at) => cell(tag, one, at)),
    );
  const body = rows.map((row) => line("td", row));
  const made = h(
    "table",
    { class: "plain", "data-testid": test },
    h("thead", {}, line("th", heads)),
    h("tbody", {}, body),
  );
  return h("div", { class: "scroll" }, made);
}

export const swatch = (colour) => h("i", { class: "square", style: { "--c": `var(${colour})` } });

/** A bar that fills; it says so to those who do not see it. */
export function meter(label, kind = "") {
  const fill = h("i");
  const range = { "aria-valuemin": "0", "aria-valuemax": "100" };
  const element = h("div", { class: `meter ${kind}`, role: "progressbar", "aria-label": label, ...range }, fill);
  const set = (share) => {
    fill.style.setProperty("transform", `scaleX(${(share || 0).toFixed(4)})`);
    mark(element, "aria-valuenow", Math.round(100 * (share || 0)));
  };
  return { element, set };
}
