// The text as a model sees it: one chunk decoded, documents coloured, tokens told apart, their ids under the pointer.
import { calledOff, latest } from "../app/api.js";
import { button, choice } from "../app/controls.js";
import { h, mark, replace, say } from "../app/dom.js";
import { count, whole } from "../app/format.js";
import { dataApi, keepInUrl } from "../app/route.js";
import { section } from "./part.js";
import { TokenTip } from "./token_tip.js";

const SIZES = [128, 256, 512, 1024, 2048];
const TONES = 4;
const LISTED = 8; // documents below the text
const number = (text, otherwise) =>
  text !== null && Number.isFinite(Number(text)) ? Math.max(0, Math.floor(Number(text))) : otherwise;

export class Chunk {
  constructor(id, { route, name, splits, size }) {
    Object.assign(this, { id, name, splits, ask: latest() });
    this.split = splits.find((one) => one.name === route.query.get("split"))?.name || splits[0].name;
    this.index = number(route.query.get("chunk"), 0);
    this.size = number(route.query.get("size"), Math.min(size || 512, 512)) || 512;
    this.keys = {
      ArrowLeft: () => this.to(this.index - 1),
      ArrowRight: () => this.to(this.index + 1),
      k: () => this.to(this.index - 1),
      j: () => this.to(this.index + 1),
    };
    this.text = h("div", { class: "chunk", "data-testid": "chunk", tabindex: "0", "aria-label": "Decoded text" });
    this.tip = new TokenTip(this.text, (at) => this.tokens[at]);
    this.documents = h("ul", { class: "legend chunk-foot" });
    this.element = section(id, "Text", this.tools(), this.text, this.documents, this.tip.element);
    this.load();
  }

  tools() {
    const arrow = (words, label, key, by, test) =>
      button("icon", words, () => this.to(this.index + by), {
        "aria-label": label,
        title: `${label} (${key})`,
        "data-testid": test,
      });
    this.before = arrow("‹", "Previous chunk", "←", -1, "chunk-previous");
    this.after = arrow("›", "Next chunk", "→", 1, "chunk-next");
    const jump = () => this.to(number(this.field.value, 0));
    const about = {
      min: "0",
      step: "1",
      "aria-label": "Chunk number",
      "data-filter": true,
      "data-testid": "chunk-number",
    };
    this.field = h("input", { type: "number", value: String(this.index), onchange: jump, ...about });
    this.all = h("span", { class: "dim" });
    const any = () => this.to(Math.floor(Math.random() * (this.chunks || 1)));
    const sizes = SIZES.includes(this.size) ? SIZES : [...SIZES, this.size].sort((a, b) => a - b);
    const splits = this.splits.map((one) => one.name);
    return h(
      "div",
      { class: "tools" },
      this.before,
      h("span", { class: "jump" }, this.field, this.all),
      this.after,
      button("toggle", "random", any, { "data-testid": "chunk-random" }),
      choice("size", sizes, this.size, (value) => this.resize(Number(value))),
      splits.length > 1 && choice("split", splits, this.split, (split) => this.change({ split, index: 0 })),
      this.tip.about,
    );
  }

  /** The same place in the text, in chunks of another size. */
  resize(size) {
    this.change({ size, index: Math.floor((this.index * this.size) / size) });
  }

  to(index) {
    const last = (this.chunks ?? Infinity) - 1;
    this.change({ index: Math.max(0, Math.min(last, index)) });
    return true;
  }

  change(what) {
    Object.assign(this, what);
    keepInUrl({ split: this.splits.length > 1 ? this.split : null, chunk: this.index, size: this.size });
    this.load();
  }

  async load() {
    this.field.value = String(this.index);
    mark(this.text, "aria-busy", "true");
    try {
      const query = new URLSearchParams({ split: this.split, index: this.index, size: this.size });
      this.draw(await this.ask(`${dataApi(this.name)}/chunk?${query}`));
    } catch (error) {
      if (!calledOff(error)) replace(this.text, h("p", { class: "nothing" }, error.message));
    }
    mark(this.text, "aria-busy", null);
  }

  draw(found) {
    this.chunks = found.chunks;
    this.tokens = found.tokens;
    this.found = found;
    say(this.all, `of ${whole(found.chunks)}`);
    mark(this.field, "max", Math.max(0, found.chunks - 1));
    this.before.disabled = found.index <= 0;
    this.after.disabled = found.index >= found.chunks - 1;
    const whole_ = [{ start: 0, stop: found.tokens.length, number: 0, begins: false }];
    const parts = found.documents.length ? found.documents : whole_;
    replace(
      this.text,
      parts.map((part) => this.document(part)),
    );
    this.text.scrollTop = 0;
    replace(
      this.documents,
      parts.slice(0, LISTED).map(legend),
      parts.length > LISTED && h("li", {}, `and ${parts.length - LISTED} more`),
    );
    this.tip.tell(null);
  }

  document(part) {
    const { number: name, begins } = part;
    const pieces = [];
    for (let at = part.start; at < part.stop; at++) {
      const { text, special } = this.tokens[at];
      const kinds = `token${at % 2 ? " odd" : ""}${special ? " special" : ""}${text ? "" : " bare"}`;
      pieces.push(h("span", { class: kinds, "data-at": String(at) }, text));
    }
    const head = begins && h("b", { class: "begins", "aria-label": `document ${name}` }, `¶ ${whole(name)}`);
    return h(
      "span",
      { class: `document tone-${name % TONES}`, "data-begins": begins, "data-document": name },
      head,
      pieces,
    );
  }
}

function legend({ number: name, begins, start, stop }) {
  const words = `document ${whole(name)}${begins ? "" : ", continued"}, ${count(stop - start, "token")}`;
  return h("li", {}, h("i", { class: `square tone-${name % TONES}` }), words);
}
