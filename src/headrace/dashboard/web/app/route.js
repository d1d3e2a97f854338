// Addresses: what a URL shows, and the URL that shows it. Names may have slashes, and keep them.
const path = (name) => name.split("/").map(encodeURIComponent).join("/");

export const runUrl = (name) => `/run/${path(name)}`;
export const dataUrl = (name) => `/data/${path(name)}`;
export const compareUrl = (names) => `/compare?runs=${names.map(encodeURIComponent).join(",")}`;
export const runApi = (name) => `/api/run/${path(name)}`;
export const dataApi = (name) => `/api/data/${path(name)}`;

export function readRoute({ pathname, search, hash }) {
  const query = new URLSearchParams(search);
  const found = (view, name = null) => ({ view, name, query, section: decode(hash.slice(1)) });
  if (pathname === "/") return found("runs");
  if (pathname === "/data" || pathname === "/data/") return found("data");
  if (pathname.startsWith("/run/")) return found("run", decode(pathname.slice(5)));
  if (pathname.startsWith("/data/")) return found("dataset", decode(pathname.slice(6)));
  if (pathname === "/compare") return found("compare");
  return found("missing", pathname);
}

function decode(text) {
  try {
    return decodeURIComponent(text).replace(/\/$/, "");
  } catch {
    return text;
  }
}

/** The address with these parts of its query changed; null takes one away. History keeps one entry for a view. */
export function keepInUrl(changes) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  if (url.href !== location.href) history.replaceState(history.state, "", url);
}
