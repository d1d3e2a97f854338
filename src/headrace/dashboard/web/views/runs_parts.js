// Around the table of runs: what is being prepared, a chip for each status, the tray of what is selected.
import { button } from "../app/controls.js";
import { h } from "../app/dom.js";
import { brief, compact, percent } from "../app/format.js";
import { compareUrl, dataUrl } from "../app/route.js";

const STATUSES = ["running", "finished", "stopped", "failed", "empty"];

/** [status, how many], of those that occur. */
export function countStatuses(runs) {
  return STATUSES.map((status) => [status, runs.filter((run) => run.status === status).length]).filter((one) => one[1]);
}

export function chips(counted, now, choose) {
  return counted.map(([status, number]) => {
    const more = { "data-status": status, "aria-pressed": String(now === status), "data-testid": `chip-${status}` };
    return button(
      "chip",
      [h("i"), `${status} `, h("b", {}, number)],
      () => choose(now === status ? null : status),
      more,
    );
  });
}

export const pace = (one) =>
  [one.mb_per_s && `${compact(one.mb_per_s)} MB/s`, one.eta_seconds && `${brief(one.eta_seconds)} left`]
    .filter(Boolean)
    .join(" · ");

/** A dataset in preparation, above the table. */
export function strip(one) {
  return h(
    "a",
    { class: "strip", href: dataUrl(one.name) },
    h("span", { class: "words" }, h("b", {}, one.name), " is being prepared"),
    h("span", { class: "meter" }, h("i", { style: { width: percent(one.share ?? 0, 1) } })),
    h("span", { class: "n" }, percent(one.share ?? 0)),
    h("span", { class: "dim" }, pace(one)),
  );
}

export function selected(names, clear) {
  if (!names.length) return [];
  const few = names.length < 2;
  return [
    h("span", {}, h("b", {}, names.length), " selected"),
    button("link", "Clear", clear),
    h(
      "a",
      { class: "button main", href: compareUrl(names), "aria-disabled": String(few), "data-testid": "compare" },
      few ? "Select one more" : "Compare",
      h("kbd", {}, "c"),
    ),
  ];
}
