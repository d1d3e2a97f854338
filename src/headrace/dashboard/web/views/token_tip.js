// What a token is: at the token, and in a line that is read aloud.
import { h, replace, say } from "../app/dom.js";
import { whole } from "../app/format.js";

const COARSE = matchMedia("(pointer: coarse)").matches;
const HINT = COARSE ? "Tap a token" : "Point at a token, or press shift and an arrow";
const shown = (text) => (text ? JSON.stringify(text) : "part of the next character");

export class TokenTip {
  /** @param {HTMLElement} text with elements .token that have data-at */
  constructor(text, tokenAt) {
    Object.assign(this, { text, tokenAt });
    this.about = h("div", { class: "token-info", "data-testid": "token", "aria-live": "polite" });
    this.element = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    const over = (event) => this.tell(event.target.closest?.(".token"));
    text.addEventListener("pointerover", over);
    text.addEventListener("click", over);
    text.addEventListener("keydown", (event) => this.pressed(event));
    for (const kind of ["pointerleave", "scroll"]) text.addEventListener(kind, () => (this.element.hidden = true));
  }

  /** Shift and an arrow go from token to token. */
  pressed(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !event.shiftKey) return;
    event.preventDefault();
    event.stopPropagation();
    const next = this.text.querySelector(`[data-at="${Math.max(0, (this.at ?? -1) + by)}"]`);
    next?.scrollIntoView({ block: "nearest" });
    if (next) this.tell(next);
  }

  tell(token) {
    this.text.querySelector(".token.here")?.classList.remove("here");
    this.element.hidden = !token;
    if (!token) return say(this.about, HINT);
    token.classList.add("here");
    this.at = Number(token.dataset.at);
    const { id, text } = this.tokenAt(this.at);
    const dim = (words) => h("span", { class: "dim" }, words);
    this.point(token, id, text);
    return replace(
      this.about,
      dim("token "),
      h("b", {}, whole(this.at)),
      dim(" id "),
      h("b", {}, id),
      h("code", {}, shown(text)),
    );
  }

  /** Below the token, or above it where the window ends. */
  point(token, id, text) {
    const { left, top, bottom } = token.getClientRects()[0] || token.getBoundingClientRect();
    replace(this.element, h("b", {}, id), h("code", {}, shown(text)));
    const { width, height } = this.element.getBoundingClientRect();
    this.element.style.setProperty("left", `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`);
    this.element.style.setProperty("top", `${bottom + 6 + height > innerHeight ? top - 6 - height : bottom + 6}px`);
  }
}
