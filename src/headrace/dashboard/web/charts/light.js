// The first drawing of a chart, in plain SVG: there at once, while the script of Plotly is still on its way.
import { svg } from "../app/dom.js";
import { MARGIN, frame, labels } from "./scale.js";

/** Draws the spec in this many pixels. */
export function light(spec, wide, high) {
  const inner = {
    w: Math.max(10, wide - MARGIN.left - MARGIN.right),
    h: Math.max(10, high - MARGIN.top - MARGIN.bottom),
  };
  const axes = frame(spec, wide, high);
  const toX = mapping(axes.x, 0, inner.w, spec.x.log);
  const toY = mapping(axes.y, inner.h, 0, spec.y.log);
  const clip = `clip-${(light.count = (light.count || 0) + 1)}`;
  return svg(
    "svg",
    { class: "light", width: wide, height: high, role: "img", "aria-label": spec.label },
    svg("clipPath", { id: clip }, svg("rect", { width: inner.w, height: inner.h + 1 })),
    svg(
      "g",
      { transform: `translate(${MARGIN.left} ${MARGIN.top})` },
      labels(axes.yTicks, spec.y).map((words, at) => horizontal(toY(axes.yTicks[at]), inner.w, words)),
      labels(axes.xTicks, spec.x).map((words, at) =>
        svg("text", { x: toX(axes.xTicks[at]), y: inner.h + 18, "text-anchor": "middle" }, words),
      ),
      svg("line", { class: "grid floor", x1: 0, x2: inner.w, y1: inner.h, y2: inner.h }),
      svg("g", { "clip-path": `url(#${clip})` }, bodies(spec, toX, toY)),
      spec.series.map((one) => one.kind === "dots" && dots(one, toX, toY)),
    ),
  );
}

function mapping([low, high], from, to, log) {
  if (log) return (value) => (value > 0 ? from + ((to - from) * Math.log(value / low)) / Math.log(high / low) : NaN);
  return (value) => from + ((to - from) * (value - low)) / (high - low);
}

function horizontal(y, wide, label) {
  return [
    svg("line", { class: "grid", x1: 0, x2: wide, y1: y, y2: y }),
    svg("text", { x: -8, y: y + 4, "text-anchor": "end" }, label),
  ];
}

function bodies(spec, toX, toY) {
  if (spec.stacked) return stack(spec.series, toX, toY);
  return spec.series.map((one) => {
    if (one.kind === "band") return area(one.x, one.low, one.high, toX, toY, one);
    if (one.kind === "bars") return bars(one, toX, toY);
    return line(one, toX, toY);
  });
}

function line(one, toX, toY) {
  const style = { stroke: colour(one), "stroke-width": one.width || 1.75, opacity: one.opacity ?? 1 };
  if (one.dash) style["stroke-dasharray"] = one.dash.replaceAll("px", "");
  return svg("path", { class: "line", d: trail(one.x, one.y, toX, toY), style });
}

function trail(xs, ys, toX, toY) {
  let [pen, d] = ["M", ""];
  for (let at = 0; at < xs.length; at++) {
    const y = ys[at] === null || ys[at] === undefined ? NaN : toY(ys[at]);
    if (!Number.isFinite(y)) {
      pen = "M";
      continue;
    }
    d += `${pen}${toX(xs[at]).toFixed(1)} ${y.toFixed(1)}`;
    pen = "L";
  }
  return d;
}

function dots(one, toX, toY) {
  if (one.x.length > 80) return null;
  return one.x.map(
    (x, at) =>
      one.y[at] !== null && svg("circle", { cx: toX(x), cy: toY(one.y[at]), r: 3.5, style: { fill: colour(one) } }),
  );
}

function area(xs, floor, roof, toX, toY, one) {
  const kept = xs.map((_, at) => at).filter((at) => floor[at] !== null && roof[at] !== null);
  if (kept.length < 2) return null;
  const there = kept.map((at) => `${toX(xs[at]).toFixed(1)} ${toY(roof[at]).toFixed(1)}`);
  const back = kept.reverse().map((at) => `${toX(xs[at]).toFixed(1)} ${toY(floor[at]).toFixed(1)}`);
  return svg("path", {
    d: `M${there.join("L")}L${back.join("L")}Z`,
    style: { fill: colour(one), opacity: one.opacity ?? 1 },
  });
}

function stack(series, toX, toY) {
  let floor = series[0]?.x.map(() => 0) || [];
  return series.map((one) => {
    const roof = floor.map((low, at) => low + (one.y[at] || 0));
    const drawn = area(one.x, floor, roof, toX, toY, { ...one, opacity: 0.92 });
    floor = roof;
    return drawn;
  });
}

function bars(one, toX, toY) {
  return one.y.map((value, at) => {
    const [left, right] = [toX(one.edges[at]), toX(one.edges[at + 1])];
    return svg("rect", {
      x: left,
      width: Math.max(0.5, right - left - 1),
      y: toY(value),
      height: Math.max(0, toY(0) - toY(value)),
      style: { fill: colour(one) },
    });
  });
}

const colour = (one) => `var(${one.colour})`;
