// What the run said, and where it can be taken up again.
import { h, replace } from "../app/dom.js";
import { clock, whole } from "../app/format.js";
import { section } from "./part.js";

export class Log {
  constructor(id) {
    this.id = id;
    this.short = "Messages";
    this.messages = h("ol", { class: "messages", "data-testid": "messages" });
    this.checkpoints = h("ul", { class: "checkpoints", "data-testid": "checkpoints" });
    this.resumes = h("p", { class: "dim", "data-testid": "resumes" });
    this.element = section(
      id,
      "Messages and checkpoints",
      h(
        "div",
        { class: "log-grid" },
        h("div", {}, h("h3", {}, "Messages"), this.messages),
        h("div", {}, h("h3", {}, "Checkpoints"), this.checkpoints, this.resumes),
      ),
    );
  }

  update({ messages, checkpoints, resumes }) {
    const key = JSON.stringify([messages, checkpoints, resumes]);
    if (key === this.key) return;
    this.key = key;
    const newest = [...(messages || [])].reverse();
    replace(
      this.messages,
      newest.length
        ? newest.map(({ t, text }) => h("li", {}, h("time", { class: "dim" }, clock(t)), h("span", {}, text)))
        : h("li", { class: "dim" }, "It said nothing."),
    );
    replace(
      this.checkpoints,
      checkpoints?.length
        ? checkpoints.map((step) => h("li", {}, whole(step)))
        : h("li", { class: "dim" }, "None is there."),
    );
    this.resumes.textContent = resumes?.length ? `Went on at step ${resumes.map(whole).join(", ")}.` : "";
  }
}
