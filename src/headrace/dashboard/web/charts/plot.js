// A spec as Plotly wants it, and Plotly itself, from the installed package and never before the first paint.
import { MARGIN, frame, labels } from "./scale.js";

export const CONFIG = {
  displayModeBar: false,
  responsive: false,
  doubleClick: false,
  showTips: false,
  scrollZoom: false,
};
const COARSE = matchMedia("(pointer: coarse)").matches; // a finger scrolls the page; it does not zoom a chart

let loading = null;

export function plotly() {
  loading ||= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    const give = withoutStyles();
    script.src = document.querySelector("meta[name=plotly]").content; // with its version, so that it is kept
    script.onload = () => {
      give();
      resolve(window.Plotly);
    };
    script.onerror = () => {
      give();
      loading = null;
      reject(new Error("The server has no Plotly: pip install plotly. The charts stay as they are."));
    };
    document.head.append(script);
  });
  return loading;
}

/** While it loads, Plotly adds a style element for maps. The policy forbids it, and nothing here is a map. */
function withoutStyles() {
  const make = Document.prototype.createElement;
  document.createElement = function (name, options) {
    return make.call(document, String(name).toLowerCase() === "style" ? "template" : name, options);
  };
  return () => delete document.createElement;
}

let colours = new Map();
export const forgetColours = () => (colours = new Map());

function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return colours.get(name);
}

/** Plotly reads tags in text. Names of runs and sources have none for it. */
export const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;");

export function traces(spec) {
  return spec.series.flatMap((one) => {
    if (one.kind === "band") return band(one);
    if (one.kind === "bars") return [bars(one)];
    return [line(one, spec)];
  });
}

function line(one, spec) {
  const dots = one.kind === "dots" && one.x.length <= 80;
  const trace = {
    type: "scatter",
    mode: dots || one.x.length === 1 ? "lines+markers" : "lines",
    name: plain(one.name),
    x: one.x,
    y: one.y,
    opacity: one.opacity ?? 1,
    cliponaxis: !dots,
    line: { color: colour(one.colour), width: one.width || 1.75, dash: one.dash || "solid" },
    marker: { size: 7, color: colour(one.colour) },
    hovertemplate: one.quiet
      ? undefined
      : `%{y:${spec.y.hover || ".4g"}}${one.unit || ""}<extra>${plain(one.name)}</extra>`,
    hoverinfo: one.quiet ? "skip" : undefined,
  };
  if (spec.stacked)
    Object.assign(trace, {
      stackgroup: "all",
      fillcolor: faded(colour(one.colour), 0.92),
      line: { width: 0, color: colour(one.colour) },
    });
  return trace;
}

function band(one) {
  const edge = {
    type: "scatter",
    mode: "lines",
    x: one.x,
    line: { width: 0, color: colour(one.colour) },
    hoverinfo: "skip",
  };
  return [
    { ...edge, y: one.low },
    { ...edge, y: one.high, fill: "tonexty", fillcolor: faded(colour(one.colour), one.opacity ?? 0.2) },
  ];
}

function bars(one) {
  return {
    type: "bar",
    x: one.edges.slice(0, -1).map((edge, at) => (edge + one.edges[at + 1]) / 2),
    width: one.edges.slice(0, -1).map((edge, at) => (one.edges[at + 1] - edge) * 0.96),
    y: one.y,
    text: one.words.map(plain),
    textposition: "none",
    hovertemplate: "%{text}<extra></extra>",
    marker: { color: colour(one.colour), line: { width: 0 } },
  };
}

function faded(hex, opacity) {
  const whole = parseInt(hex.slice(1), 16);
  return `rgba(${whole >> 16}, ${(whole >> 8) & 255}, ${whole & 255}, ${opacity})`;
}

export function layout(spec, wide, high) {
  const axes = frame(spec, wide, high);
  const words = { color: colour("--dim"), size: 12, family: getComputedStyle(document.body).fontFamily };
  return {
    width: wide,
    height: high,
    margin: { l: MARGIN.left, r: MARGIN.right, t: MARGIN.top, b: MARGIN.bottom, pad: 0 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: words,
    showlegend: false,
    hovermode: spec.bars ? "closest" : "x unified",
    hoverlabel: {
      bgcolor: colour("--raised"),
      bordercolor: colour("--line"),
      font: { ...words, color: colour("--ink") },
    },
    dragmode: spec.zoom && !COARSE ? "zoom" : false,
    barmode: "overlay",
    xaxis: {
      ...axis(axes.x, axes.xTicks, spec.x),
      showgrid: false,
      showline: true,
      linecolor: colour("--line"),
      fixedrange: !spec.zoom || COARSE,
      unifiedhovertitle: { text: spec.x.title || "%{x:,.0f}" },
    },
    yaxis: { ...axis(axes.y, axes.yTicks, spec.y), gridcolor: colour("--grid"), fixedrange: true },
  };
}

function axis(range, values, about) {
  const { log } = about;
  return {
    type: log ? "log" : "linear",
    range: log ? range.map(Math.log10) : range,
    tickvals: values,
    ticktext: labels(values, about).map(plain),
    ticks: "outside",
    ticklen: 6,
    tickcolor: "rgba(0,0,0,0)",
    zeroline: false,
    automargin: false,
    showspikes: false,
  };
}
