// A section of a view, with an address of its own.
import { h } from "../app/dom.js";

export function section(id, title, ...children) {
  return h(
    "section",
    { id, class: `part part-${id}`, "data-testid": `section-${id}`, "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, h("a", { href: `#${id}`, class: "anchor" }, title)),
    children,
  );
}

/** Shares of a whole as one bar; the same order and colours everywhere. */
export function shareBar(parts, label) {
  return h(
    "div",
    { class: "sharebar", role: "img", "aria-label": label },
    parts.map(({ name, share, colour, words }) =>
      h("i", { title: words || name, style: { "flex-grow": String(Math.max(share, 0)), "--c": `var(${colour})` } }),
    ),
  );
}
