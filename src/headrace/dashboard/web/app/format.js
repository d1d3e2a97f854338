// Numbers, times and sizes as people read them. What is not there is an en dash.
const NONE = "–";
const there = (value) => typeof value === "number" && Number.isFinite(value);
const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export const whole = (value) => (there(value) ? grouped.format(value) : NONE);

/** More than the peak: it was measured while the machine had other work. */
export const mfu = (value) => (value > 1 ? ">100%" : percent(value));

/** 1,234 -> 1.23k; three digits, so that columns line up. */
export function compact(value) {
  if (!there(value)) return NONE;
  const size = Math.abs(value);
  for (const [limit, letter] of [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ]) {
    if (size >= limit * 0.9995) return digits(value / limit) + letter;
  }
  return size >= 100 || Number.isInteger(value) ? String(Math.round(value)) : digits(value);
}

function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

export function loss(value) {
  if (!there(value)) return NONE;
  return Math.abs(value) >= 1000 ? compact(value) : value.toFixed(Math.abs(value) >= 100 ? 1 : 3);
}

export function percent(value, places = null) {
  if (!there(value)) return NONE;
  const share = 100 * value;
  if (places !== null) return `${share.toFixed(places)}%`;
  if (share > 0 && share < 0.1) return "<0.1%";
  return `${share.toFixed(share >= 9.95 || share === 0 ? 0 : 1)}%`;
}

const bare = (text) => text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");

/** On an axis no zeros follow, and neighbours differ: 1.5k, 2k, but 199,200 and 199,400. */
export function compactTick(value, step = Infinity) {
  const told = 10 ** (Math.floor(Math.log10(Math.abs(value) || 1)) - 2); // what three digits can tell apart
  return Math.abs(value) >= 1000 && step < told ? whole(value) : bare(compact(value));
}

export const bytesTick = (value) => bare(bytes(value));
export const timeTick = (seconds) => bare(brief(seconds));
export const percentTick = (value) => `${Number((100 * value).toPrecision(3))}%`;

/** Three significant digits, with an exponent only where nothing else is legible. */
export function short(value) {
  if (!there(value)) return NONE;
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.0095 || size >= 1e7))
    return value.toExponential(1).replace("e+", "e").replace(".0e", "e");
  return size >= 1000 ? compact(value) : String(Number(value.toPrecision(3)));
}

export function duration(seconds) {
  if (!there(seconds)) return NONE;
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(s % 60).padStart(2, "0")} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** The same without the small unit, for a narrow column. */
export function brief(seconds) {
  if (!there(seconds)) return NONE;
  if (seconds < 59.5) return `${seconds < 10 ? Number(Math.max(0, seconds).toFixed(1)) : Math.round(seconds)} s`;
  if (seconds < 3570) return `${Math.round(seconds / 60)} min`;
  return seconds < 86400 ? `${digits(seconds / 3600)} h` : `${digits(seconds / 86400)} d`;
}

export function ago(time, now = Date.now() / 1000) {
  if (!there(time)) return NONE;
  const s = Math.max(0, Math.round(now - time));
  if (s < 5) return "now";
  const [size, unit] = s < 60 ? [1, "s"] : s < 3600 ? [60, "min"] : s < 129_600 ? [3600, "h"] : [86_400, "d"];
  return `${Math.floor(s / size)} ${unit} ago`;
}

export function clock(time) {
  if (!there(time)) return NONE;
  const date = new Date(time * 1000);
  const same = date.toDateString() === new Date().toDateString();
  const hour = date.toLocaleTimeString("en-GB");
  return same ? hour : `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${hour}`;
}

export function bytes(value) {
  if (!there(value)) return NONE;
  for (const [limit, unit] of [
    [1e12, "TB"],
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
  ]) {
    if (value >= limit) return `${digits(value / limit)} ${unit}`;
  }
  return `${Math.round(value)} B`;
}

export const milliseconds = (ms) =>
  !there(ms) ? NONE : ms >= 9.95 ? `${whole(ms)} ms` : `${Number(ms.toPrecision(2))} ms`;
export const phaseName = (name) => ({ host_sync: "sync", python: "other" })[name] || name.replaceAll("_", " ");
export const count = (number, one, many = `${one}s`) => `${whole(number)} ${number === 1 ? one : many}`;
