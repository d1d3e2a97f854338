// Keys: the page's own, then those of the view. None of them while one writes in a field.
import { h, replace } from "./dom.js";
import { nextTheme } from "./look.js";

const KEYS = [
  ["/", "filter"],
  ["j  k", "next, previous row"],
  ["Enter", "open the row"],
  ["x", "select the row for a comparison"],
  ["c", "compare what is selected"],
  ["←  →", "previous, next chunk or sample"],
  ["g", "all runs"],
  ["d", "all data"],
  ["t", "theme: system, light, dark"],
  ["Esc", "leave the field, clear the selection"],
  ["?", "this help"],
];

const writes = (target) =>
  target.closest?.("input:not([type=checkbox]):not([type=range]), textarea, select, [contenteditable]");

export function startKeys(view, go) {
  const dialog = document.getElementById("keys");
  document.getElementById("help").addEventListener("click", () => help(dialog));
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    if (writes(event.target)) {
      if (event.key !== "Escape") return;
      event.preventDefault(); // a search field would empty itself, and the list stay filtered
      event.target.blur();
      return;
    }
    if (pressed(event, view(), go, dialog)) event.preventDefault();
  });
}

function pressed(event, view, go, dialog) {
  const { key } = event;
  if (key === "t") return nextTheme() || true;
  if (key === "?") return help(dialog) || true;
  if (key === "g") return go("/") || true;
  if (key === "d") return go("/data") || true;
  if (key === "/") {
    const field = document.querySelector("[data-filter]");
    field?.focus();
    field?.select();
    return Boolean(field);
  }
  return Boolean(view?.keys?.[key]?.(event));
}

function help(dialog) {
  replace(
    dialog,
    h(
      "header",
      {},
      h("h2", {}, "Keyboard"),
      h("button", { type: "button", class: "icon", "aria-label": "Close", onclick: () => dialog.close() }, "×"),
    ),
    h(
      "dl",
      {},
      KEYS.map(([keys, what]) =>
        h(
          "div",
          {},
          h(
            "dt",
            {},
            keys.split("  ").map((key) => h("kbd", {}, key)),
          ),
          h("dd", {}, what),
        ),
      ),
    ),
    h(
      "p",
      { class: "dim" },
      "Filter: words, or status:running, model:ten, data:english; a minus before one excludes it.",
    ),
  );
  dialog.showModal();
}
