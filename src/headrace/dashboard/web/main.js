// Begins the page: reads the address, draws the view from what came with the page, then follows the changes.
import { Refused, calledOff, embedded, get } from "./app/api.js";
import { replace } from "./app/dom.js";
import { startKeys } from "./app/keyboard.js";
import { Live } from "./app/live.js";
import { connection, page, startLook, title } from "./app/look.js";
import { readRoute } from "./app/route.js";
import { settled } from "./charts/chart.js";
import { openCompare } from "./views/compare.js";
import { openData } from "./views/data.js";
import { openDataset } from "./views/dataset.js";
import { openRun } from "./views/run.js";
import { openRuns } from "./views/runs.js";
import { skeleton, unreachable, wrong } from "./views/states.js";

const VIEWS = { runs: openRuns, run: openRun, compare: openCompare, data: openData, dataset: openDataset };
const TAB = { runs: "runs", run: "runs", compare: "runs", data: "data", dataset: "data" };
const PATIENCE = 3000; // milliseconds until a silent server is asked again
const main = document.getElementById("main");

let view = null;
let opening = 0;
let shown = null;
let again = null;

const live = new Live({
  event: (kind, data) => view?.event?.(kind, data),
  state: connection,
  renewed: () => view?.renew?.(),
});

async function open(first) {
  const route = readRoute(location);
  const turn = ++opening;
  shown = place();
  clearTimeout(again);
  view?.close?.();
  view = null;
  live.follow(null);
  delete main.dataset.ready;
  delete main.dataset.charts;
  page(TAB[route.view]);
  if (!VIEWS[route.view])
    return fail(route, new Refused(404, first?.error || `There is no page ${location.pathname}.`));
  if (first?.error) return fail(route, new Refused(404, first.error));
  const make = VIEWS[route.view];
  try {
    const found = first || (await ask(make.api(route), route));
    if (turn !== opening) return null;
    show(make, route, found, Boolean(first));
  } catch (error) {
    if (turn === opening && !calledOff(error)) fail(route, error);
  }
  return null;
}

function ask(url, route) {
  const slow = setTimeout(() => replace(main, skeleton(route.view)), 150);
  return get(url).finally(() => clearTimeout(slow));
}

function show(make, route, found, fresh) {
  main.className = route.view;
  view = make({ root: main, route, found, go });
  main.dataset.ready = route.view;
  settled();
  if (view.stream) live.follow(view.stream);
  else connection("off");
  if (route.section) requestAnimationFrame(() => document.getElementById(route.section)?.scrollIntoView());
  else if (!fresh) scrollTo(0, history.state?.scroll || 0); // the browser itself does it for a page that was loaded
  if (!fresh) main.focus({ preventScroll: true });
}

function fail(route, error) {
  main.className = "trouble";
  connection("off");
  const refused = error instanceof Refused;
  title(refused ? "not found" : "no answer");
  replace(main, refused ? wrong(route, error) : unreachable(error, () => open(null)));
  main.dataset.ready = refused ? "missing" : "unreachable";
  settled();
  if (!refused) again = setTimeout(() => open(null), PATIENCE);
}

function go(url) {
  history.replaceState({ scroll: scrollY }, "");
  history.pushState(null, "", url);
  open(null);
}

function followed(event) {
  const link = event.target.closest?.("a[href^='/']");
  if (
    !link ||
    event.defaultPrevented ||
    event.button ||
    event.ctrlKey ||
    event.metaKey ||
    event.shiftKey ||
    event.altKey
  )
    return;
  if (link.target || link.pathname.startsWith("/static/") || link.pathname.startsWith("/api/")) return;
  event.preventDefault();
  go(link.href);
}

/** What a view is made of; the rest of an address it keeps itself. */
const place = () => location.pathname + (new URLSearchParams(location.search).get("runs") || "");

addEventListener("click", followed);
addEventListener("popstate", () => place() !== shown && open(null));
startLook();
startKeys(() => view, go);
open(embedded());
