// A loss over a run as a line of one word: drawn by hand, since 200 of them must cost nothing.
import { svg } from "../app/dom.js";
import { extent } from "./scale.js";

const [WIDE, HIGH] = [112, 28];

export function sparkline() {
  const line = svg("path", { class: "spark-line" });
  const end = svg("circle", { class: "spark-end", r: 2 });
  const element = svg("svg", { class: "spark", viewBox: `0 0 ${WIDE} ${HIGH}`, "aria-hidden": "true" }, line, end);
  let drawn = null;
  const draw = (values) => {
    const key = `${values?.length} ${values?.[0]} ${values?.[values.length - 1]}`;
    if (key === drawn) return;
    drawn = key;
    paint(
      line,
      end,
      (values || []).filter((value) => value !== null && Number.isFinite(value)),
    );
  };
  return { element, draw };
}

function paint(line, end, values) {
  const range = extent([values]);
  const alone = values.length < 2;
  line.setAttribute("d", alone ? "" : path(values, range));
  end.setAttribute("visibility", alone ? "hidden" : "visible");
  if (alone) return;
  end.setAttribute("cx", WIDE - 3);
  end.setAttribute("cy", height(values[values.length - 1], range));
}

function height(value, [low, high]) {
  return high === low ? HIGH / 2 : 3 + (HIGH - 6) * (1 - (value - low) / (high - low));
}

function path(values, range) {
  const wide = WIDE - 5;
  return values
    .map(
      (value, at) =>
        `${at ? "L" : "M"}${(2 + (wide * at) / (values.length - 1)).toFixed(1)} ${height(value, range).toFixed(1)}`,
    )
    .join("");
}
