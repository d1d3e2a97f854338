// What is around a view: theme, title, icon of the tab, the light that says whether the server is there.
import { redrawAll } from "../charts/chart.js";
import { h, mark, replace, say, svg } from "./dom.js";

const THEMES = ["system", "light", "dark"];
const DRAWINGS = {
  system: ["M12 3a9 9 0 1 0 0 18z", "M12 3a9 9 0 0 1 0 18"],
  light: ["M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z", "M12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M5 19l2-2M17 7l2-2"],
  dark: ["M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5z"],
};
const STATUS_COLOURS = {
  running: "#2469b3",
  finished: "#1a7341",
  failed: "#b3261e",
  stopped: "#8f5a00",
  empty: "#7b889e",
};

const theme = () => document.documentElement.dataset.theme || "system";

export function nextTheme() {
  const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem("headrace-theme", next);
  } catch {
    // It lasts as long as the page then.
  }
  drawTheme();
  redrawAll();
}

function drawTheme() {
  const button = document.getElementById("theme");
  const words = `Theme: ${theme() === "system" ? "as the system" : theme()}`;
  mark(button, "aria-label", words);
  mark(button, "title", `${words} (t)`);
  const parts = DRAWINGS[theme()].map((d, at) =>
    svg("path", { d, class: theme() === "system" && at === 0 ? "full" : "" }),
  );
  replace(button, svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, parts));
}

export function startLook() {
  drawTheme();
  document.getElementById("theme").addEventListener("click", nextTheme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
}

export function title(words, status = null) {
  const whole = words ? `${words} · Headrace` : "Headrace";
  if (document.title !== whole) document.title = whole;
  icon(status);
}

let shown = null;

/** The icon of the tab has the colour of what the run does. */
function icon(status) {
  if (status === shown) return;
  shown = status;
  const wave = (y) => `<path d="M5 ${y}c3.7-3.6 7.3-3.6 11 0s7.3 3.6 11 0"/>`;
  const square = `<rect width="32" height="32" rx="7" fill="${STATUS_COLOURS[status] || "#2469b3"}"/>`;
  const lines = [11, 17, 23].map(wave).join("");
  const waves = `<g fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round">${lines}</g>`;
  const picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">${square}${waves}</svg>`;
  document.getElementById("icon").href = status
    ? `data:image/svg+xml,${encodeURIComponent(picture)}`
    : "/static/favicon.svg";
}

const CONNECTION = { waiting: "connecting", live: "live", lost: "reconnecting", paused: "paused", off: "" };
let lostAt = null;

export function connection(state) {
  const element = document.getElementById("connection");
  mark(element, "data-state", state);
  say(element.querySelector("span"), CONNECTION[state]);
  const banner = document.getElementById("banner");
  if (state !== "lost") {
    lostAt = null;
    banner.hidden = true;
    return;
  }
  lostAt ||= new Date();
  banner.hidden = false;
  const since = lostAt.toLocaleTimeString("en-GB");
  say(
    banner,
    `The server does not answer; reconnecting. What you see is from ${since}. To start it: headrace dashboard`,
  );
}

/** Which page the bar at the top says this is. */
export function page(name, folder) {
  for (const link of document.querySelectorAll("[data-page]"))
    mark(link, "aria-current", link.dataset.page === name ? "page" : null);
  if (folder !== undefined) say(document.getElementById("folder"), folder);
}

export const pill = (status) =>
  h("span", { class: "pill", "data-status": status, "data-testid": "status" }, h("i"), status);
