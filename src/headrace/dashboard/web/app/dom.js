// Elements from plain objects. Text is always text: nothing here, or anywhere else, reads a string as HTML.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props || {})) set(element, name, value);
  append(element, children);
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "style") for (const [rule, to] of Object.entries(value)) element.style.setProperty(rule, to);
  else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
  else element.setAttribute(name, value === true ? "" : String(value));
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const svg = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** Writes only what changed, so that a table of 200 rows costs nothing while it stands still. */
export function say(element, text) {
  const words = text === null || text === undefined ? "" : String(text);
  if (element.textContent !== words) element.textContent = words;
}

export function mark(element, name, value) {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value))
    element.setAttribute(name, value === true ? "" : String(value));
}

const waiting = new Set();

/** Runs once before the next frame, however often it is asked for. */
export function nextFrame(job) {
  if (waiting.has(job)) return;
  waiting.add(job);
  requestAnimationFrame(() => {
    waiting.delete(job);
    job();
  });
}
