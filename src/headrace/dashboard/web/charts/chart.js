// A chart with its place kept: drawn at once in SVG, taken over by Plotly when it is there and the chart is seen.
import { h, nextFrame, replace } from "../app/dom.js";
import { light } from "./light.js";
import { CONFIG, forgetColours, layout, plotly, traces } from "./plot.js";

const all = new Set();
let Plotly = null;
let queue = [];
let working = false;
let loading = null;

const seen = new IntersectionObserver(
  (entries) => entries.forEach(({ target, isIntersecting }) => target.chart?.show(isIntersecting)),
  { rootMargin: "150px" },
);
const sized = new ResizeObserver((entries) => entries.forEach(({ target }) => target.chart?.resized()));

export class Chart {
  /** @param {{id: string, title: string, size?: string, zoom?: (range: number[] | null) => void}} about */
  constructor({ id, title, size = "middle", zoom = null, tools = null }) {
    this.zoom = zoom;
    this.spec = null;
    this.visible = false;
    this.box = h("div", { class: `box ${size}` });
    this.box.chart = this;
    this.note = h("span", { class: "note" });
    this.legend = h("ul", { class: "legend", "aria-label": "Legend" });
    this.element = h(
      "figure",
      { class: "chart", "data-testid": `chart-${id}`, "data-chart": id },
      h("figcaption", {}, h("h3", {}, title), this.note, tools),
      this.box,
      this.legend,
    );
    all.add(this);
    seen.observe(this.box);
    sized.observe(this.box);
  }

  /** Shows this spec from now on; nothing to show leaves the place empty, with words in it. */
  draw(spec) {
    this.spec = spec;
    nextFrame((this.paint ||= () => this.now()));
  }

  now() {
    if (!this.box.isConnected || !this.spec) return;
    const [wide, high] = [this.box.clientWidth, this.box.clientHeight];
    if (!wide) return;
    this.legends();
    const bare = !this.spec.series.some((one) => one.x.length);
    this.element.toggleAttribute("data-bare", bare);
    if (bare) return this.bare();
    if (!this.div) {
      replace(this.box, light(this.spec, wide, high));
      if (this.visible) want(this);
    } else if (this.visible) this.take();
    else this.late = true;
  }

  bare() {
    this.forget();
    replace(this.box, h("p", { class: "nothing" }, this.spec.nothing || "Nothing was measured yet."));
  }

  legends() {
    const entries = this.spec.legend ?? [];
    const key = JSON.stringify(entries);
    if (key === this.legendKey) return;
    this.legendKey = key;
    replace(
      this.legend,
      entries.map(({ name, colour, shape }) =>
        h("li", {}, h("i", { class: shape || "line", style: { "--c": `var(${colour})` } }), name),
      ),
    );
  }

  show(visible) {
    this.visible = visible;
    if (!visible || !this.spec) return;
    if (!this.div) want(this);
    else if (this.late) this.take();
  }

  resized() {
    const wide = this.box.clientWidth;
    if (wide === this.wide) return;
    this.wide = wide;
    if (this.spec) nextFrame((this.paint ||= () => this.now()));
  }

  /** Plotly draws beside the first drawing, which leaves when the other stands. */
  async take() {
    this.late = false;
    const [wide, high] = [this.box.clientWidth, this.box.clientHeight];
    const spec = { ...this.spec, zoom: Boolean(this.zoom) };
    if (this.div) return Plotly.react(this.div, traces(spec), layout(spec, wide, high), CONFIG);
    const div = (this.div = h("div", { class: "plot" }));
    this.box.append(div);
    await Plotly.newPlot(div, traces(spec), layout(spec, wide, high), CONFIG);
    this.box.querySelector(".light")?.remove();
    if (this.zoom) this.listen(div);
    return null;
  }

  listen(div) {
    div.on("plotly_relayout", (change) => {
      const [low, high] = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      if (low !== undefined && high !== undefined) this.zoom([low, high]);
    });
    div.on("plotly_doubleclick", () => this.zoom(null));
  }

  forget() {
    if (this.div) Plotly.purge(this.div);
    this.div = null;
  }

  close() {
    all.delete(this);
    seen.unobserve(this.box);
    sized.unobserve(this.box);
    this.forget();
  }
}

function want(chart) {
  if (!queue.includes(chart)) queue.push(chart);
  if (Plotly) work();
  else load();
}

/** Once a chart is seen, and not before the page stands; without Plotly the first drawings stay. */
function load() {
  loading ||= new Promise((painted) => requestAnimationFrame(() => setTimeout(painted, 30)))
    .then(plotly)
    .then((found) => {
      Plotly = found;
      return work();
    })
    .catch((error) => {
      console.warn(error.message);
      say("light");
    });
}

/** One chart in a turn, so that the page answers between them. */
async function work() {
  if (working) return;
  working = true;
  while (queue.length) {
    const chart = queue.shift();
    if (!all.has(chart) || chart.div || !chart.box.isConnected || chart.element.hasAttribute("data-bare")) continue;
    await chart.take();
    await new Promise((resolve) => setTimeout(resolve));
  }
  working = false;
  say("ready");
}

/** For those who wait for the picture: "ready" when the charts on the screen are Plotly's, "light" if it is missing. */
const say = (state) => (document.getElementById("main").dataset.charts = state);

/** A view has been shown; if no chart of it is on the screen there is nothing to wait for. */
export function settled() {
  setTimeout(() => {
    if (![...all].some(onScreen)) say("ready");
    else if (Plotly) work();
  }, 100); // an address with a section has been scrolled to by then
}

function onScreen({ box }) {
  const { top, bottom, width } = box.getBoundingClientRect();
  return width > 0 && bottom > 0 && top < innerHeight;
}

export function redrawAll() {
  forgetColours();
  for (const chart of all) if (chart.div) nextFrame((chart.paint ||= () => chart.now()));
}
