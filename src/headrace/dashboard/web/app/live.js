// The stream of changes: opened for a view, opened again when it breaks, closed while nobody looks.
const KINDS = ["runs", "points", "diagnosis", "prepare", "reset", "full"];
const FIRST_WAIT = 700;
const LONGEST_WAIT = 5000;
const HIDDEN_PATIENCE = 10_000; // a glance at another tab costs no reconnect

export class Live {
  /** @param {{event: (kind: string, data: object) => void, state: (name: string) => void, renewed: () => void}} ears */
  constructor(ears) {
    this.ears = ears;
    this.address = null;
    this.instance = null;
    this.wait = FIRST_WAIT;
    document.addEventListener("visibilitychange", () => this.looked());
    addEventListener("pagehide", () => this.close());
    addEventListener("pageshow", (event) => event.persisted && this.open());
  }

  /** `address` is asked for at every opening, so that a cursor in it is the newest. */
  follow(address) {
    this.close();
    this.address = address;
    this.wait = FIRST_WAIT;
    if (address) this.open();
  }

  open() {
    if (!this.address || this.source) return;
    clearTimeout(this.timer);
    const source = new EventSource(this.address());
    this.source = source;
    source.addEventListener("hello", (event) => this.hello(JSON.parse(event.data).instance));
    for (const kind of KINDS) source.addEventListener(kind, (event) => this.ears.event(kind, JSON.parse(event.data)));
    source.onopen = () => {
      this.wait = FIRST_WAIT;
      this.ears.state("live");
    };
    source.onerror = () => this.lost();
  }

  hello(instance) {
    const before = this.instance;
    this.instance = instance;
    if (before && before !== instance) this.ears.renewed();
  }

  /** EventSource would ask again with its first cursor; a new one asks with the newest. */
  lost() {
    this.close();
    this.ears.state("lost");
    this.timer = setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(LONGEST_WAIT, this.wait * 1.6);
  }

  close() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  looked() {
    clearTimeout(this.patience);
    if (document.hidden) {
      this.patience = setTimeout(() => {
        this.close();
        this.ears.state("paused");
      }, HIDDEN_PATIENCE);
    } else this.open();
  }
}
