// Which tokens the data has: counts over rank, and the most frequent ones. Asked for when it is looked at.
import { get } from "../app/api.js";
import { h, replace, say } from "../app/dom.js";
import { compact, compactTick, count, percent, whole } from "../app/format.js";
import { dataApi } from "../app/route.js";
import { Chart } from "../charts/chart.js";
import { section } from "./part.js";

export class Frequency {
  constructor(id, { name, split }) {
    this.address = `${dataApi(name)}/frequency?split=${encodeURIComponent(split)}&top=50`;
    this.chart = new Chart({ id: "frequency", title: "Count of a token over its rank", size: "tall" });
    this.words = h("p", { class: "dim" }, "Counting tokens…");
    this.table = h("table", { class: "plain", "data-testid": "top-tokens" });
    this.element = section(
      id,
      "Token frequency",
      this.words,
      h(
        "div",
        { class: "anatomy-grid" },
        this.chart.element,
        h(
          "div",
          { class: "scroll high", tabindex: "0", role: "region", "aria-label": "Most frequent tokens" },
          this.table,
        ),
      ),
    );
    this.watch = new IntersectionObserver((entries) => entries.some((one) => one.isIntersecting) && this.load(), {
      rootMargin: "300px",
    });
    this.watch.observe(this.element);
  }

  async load() {
    this.watch.disconnect();
    try {
      this.draw(await get(this.address));
    } catch (error) {
      say(this.words, error.message);
    }
  }

  draw(found) {
    const all = found.counted >= found.total;
    const part = all ? "All" : `A sample of ${compact(found.counted)} of`;
    const never = `${count(found.never, "token")} of the vocabulary ${found.never === 1 ? "does" : "do"} not occur`;
    say(this.words, `${part} ${compact(found.total)} tokens. ${never}${all ? "" : " in it"}.`);
    const { rank, count: counts } = found.curve;
    this.chart.draw({
      label: "Count of tokens over rank, both axes logarithmic",
      series: [{ name: "count", x: rank, y: counts, colour: "--series-1", width: 2 }],
      x: { format: compactTick, log: true, title: "rank %{x:,d}" },
      y: { format: compactTick, log: true, hover: ",.0f" },
    });
    const most = found.top[0]?.share || 1;
    replace(
      this.table,
      h("caption", {}, "Most frequent"),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["Token", "Id", "Count", "Share", ""].map((words, at) =>
            h("th", { scope: "col", class: at && at < 4 ? "n" : null }, words),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        found.top.map(({ id, text, count: times, share }) =>
          h(
            "tr",
            {},
            h("td", {}, h("code", { class: "piece" }, JSON.stringify(text))),
            h("td", { class: "n dim" }, id),
            h("td", { class: "n" }, whole(times)),
            h("td", { class: "n" }, percent(share)),
            h(
              "td",
              { class: "track" },
              h("i", { style: { width: `${(100 * share) / most}%`, "--c": "var(--series-1)" } }),
            ),
          ),
        ),
      ),
    );
  }

  close() {
    this.watch.disconnect();
    this.chart.close();
  }
}
