// Questions to the server. An answer that is an error becomes one that can be shown.
export class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

export async function get(url, signal) {
  const answer = await fetch(url, { signal, headers: { accept: "application/json" }, cache: "no-store" });
  let found = null;
  try {
    found = await answer.json();
  } catch {
    // Not JSON: the status says enough.
  }
  if (!answer.ok) throw new Refused(answer.status, found?.error || `The server answered ${answer.status}.`);
  return found;
}

/** The newest question counts: an older one that is still on its way is called off. */
export function latest() {
  let control = null;
  return (url) => {
    control?.abort();
    control = new AbortController();
    return get(url, control.signal);
  };
}

export const calledOff = (error) => error?.name === "AbortError";

/** What the server put into the page, once: the first view needs no question. */
export function embedded() {
  const element = document.getElementById("state");
  if (!element) return null;
  element.remove();
  try {
    return JSON.parse(element.textContent);
  } catch {
    return null;
  }
}
