// Addresses: what a URL shows, and the URL that shows it. Names may have slashes, and keep them.
const path = (name) => name.split("/").map(encodeURIComponent).join("/");

export const runUrl = (name) => `/run/${path(name)}`;
export const dataUrl = (name) => `/data/${path(name)}`;
export const compareUrl = (names) => `/compare?runs=${names.map(encodeURIComponent).join(",")}`;
export const runApi = (name) => `/api/run/${path(name)}`;
export const dataApi = (name) => `/api/data/${path(name)}`;

export function readRoute({ pathname, search, hash }) {
  const query = new URLSearchParams(search);
  const found = (view, name = null) => ({ view, name, query, search, section: decode(hash.slice(1)) });
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

/** Names in a query, `runs=a,b%2Cc`: a comma of a name is written as %2C, so the text is cut before it is decoded. */
export function namesIn(search, name) {
  const part = parts(search).find((one) => one.startsWith(`${name}=`)) || "";
  return part
    .slice(name.length + 1)
    .split(",")
    .filter(Boolean)
    .map((one) => decode(one.replaceAll("+", " ")));
}

const parts = (search) => search.replace(/^\?/, "").split("&").filter(Boolean);

/** The address with these parts of its query changed; null takes one away, and the others stay as they are written. */
export function keepInUrl(changes) {
  let kept = parts(location.search);
  for (const [name, value] of Object.entries(changes)) {
    kept = kept.filter((one) => one.split("=")[0] !== name);
    if (value !== null && value !== "") kept.push(`${name}=${encodeURIComponent(value)}`);
  }
  const url = location.pathname + (kept.length ? `?${kept.join("&")}` : "") + location.hash;
  if (url !== location.pathname + location.search + location.hash) history.replaceState(history.state, "", url);
}
