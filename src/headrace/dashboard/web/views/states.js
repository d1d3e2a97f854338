// Pages with nothing to show: what is not there and what to run, a server that is silent, a place that is still empty.
import { h, svg } from "../app/dom.js";

/** A command with a button that copies it. */
export function command(words) {
  const button = h("button", { type: "button", class: "copy", "aria-label": `Copy: ${words}` }, "copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(words);
      button.textContent = "copied";
    } catch {
      button.textContent = "select it";
    }
    setTimeout(() => (button.textContent = "copy"), 1500);
  });
  return h("div", { class: "command" }, h("code", {}, words), button);
}

export function noRuns(folder) {
  return h(
    "section",
    { class: "empty", "data-testid": "empty" },
    waves(),
    h("h1", {}, "No runs yet"),
    h(
      "p",
      {},
      "This page looks into ",
      h("code", {}, folder || "runs"),
      " and shows a run as soon as its first event is written. You need not reload.",
    ),
    h(
      "ol",
      { class: "todo" },
      h(
        "li",
        {},
        h("b", {}, "See it work"),
        h("span", {}, "From nothing to a trained model in about two minutes, offline."),
        command("headrace demo"),
      ),
      h(
        "li",
        {},
        h("b", {}, "Or prepare a text"),
        h("span", {}, "Once: tokens that every later run reads."),
        command("headrace prepare python-stdlib"),
      ),
      h(
        "li",
        {},
        h("b", {}, "and train on it"),
        h("span", {}, "It appears here with its first step."),
        command("headrace train data/python-stdlib --model ten --size nano"),
      ),
    ),
  );
}

export function noData(folder) {
  return h(
    "section",
    { class: "empty", "data-testid": "empty" },
    waves(),
    h("h1", {}, "No prepared data yet"),
    h(
      "p",
      {},
      "This page looks into ",
      h("code", {}, folder || "data"),
      ". A dataset appears while it is being prepared.",
    ),
    h(
      "ol",
      { class: "todo" },
      h(
        "li",
        {},
        h("b", {}, "Offline"),
        h("span", {}, "The source of your own Python, about 11 MB of text."),
        command("headrace prepare python-stdlib"),
      ),
      h(
        "li",
        {},
        h("b", {}, "Your own files"),
        h("span", {}, "jsonl, parquet, arrow or text, compressed or not."),
        command("headrace prepare 'texts/*.jsonl.zst' --out data/mine --tokenizer gpt2"),
      ),
    ),
  );
}

const wave = (y) => svg("path", { d: `M2 ${y}c3.3-3.4 6.7-3.4 10 0s6.7 3.4 10 0` });
const waves = () => svg("svg", { class: "waves", viewBox: "0 0 24 24", "aria-hidden": "true" }, [8, 13, 18].map(wave));

export function wrong(route, error) {
  const back = route.view === "data" || route.view === "dataset" ? ["/data", "All data"] : ["/", "All runs"];
  return h(
    "section",
    { class: "empty", "data-testid": "not-found" },
    waves(),
    h("h1", {}, error.status === 404 ? "Not found" : "That does not work"),
    h("p", { class: "words" }, error.message),
    h("p", {}, h("a", { class: "button", href: back[0] }, back[1])),
  );
}

export function unreachable(error, again) {
  return h(
    "section",
    { class: "empty", "data-testid": "unreachable" },
    waves(),
    h("h1", {}, "The server does not answer"),
    h("p", {}, "It was stopped, or the machine sleeps. Start it again, and this page goes on by itself."),
    command("headrace dashboard"),
    h("p", {}, h("button", { type: "button", class: "button", onclick: again }, "Try again")),
  );
}

const BLOCKS = { runs: 8, data: 4, run: 4, compare: 3, dataset: 4 };

/** The place of what is on its way. */
export function skeleton(view) {
  return h(
    "div",
    { class: "skeleton", "aria-busy": "true", "aria-label": `Loading ${view}` },
    Array.from({ length: BLOCKS[view] || 4 }, () => h("div", {})),
  );
}
