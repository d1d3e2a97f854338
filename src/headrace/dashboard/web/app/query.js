// What the filter box understands: words, and field:value, where a minus before it turns it round.
const FIELDS = {
  status: (run) => run.status,
  model: (run) => `${run.model || ""} ${run.size || ""}`,
  size: (run) => run.size,
  data: (run) => (run.data || []).join(" "),
  name: (run) => `${run.name} ${run.title || ""}`,
  device: (run) => run.device,
};

export function parse(text) {
  return text
    .trim()
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => {
      const not = word.length > 1 && word.startsWith("-");
      const bare = not ? word.slice(1) : word;
      const at = bare.indexOf(":");
      const field = at > 0 && FIELDS[bare.slice(0, at)] ? bare.slice(0, at) : null;
      return { not, field, value: field ? bare.slice(at + 1) : bare };
    });
}

export function matches(run, terms) {
  return terms.every(({ not, field, value }) => has(run, field, value) !== not);
}

function has(run, field, value) {
  const texts = field ? [FIELDS[field](run)] : Object.values(FIELDS).map((read) => read(run));
  return texts.some((text) =>
    String(text || "")
      .toLowerCase()
      .includes(value),
  );
}

const STATUS_ORDER = ["running", "failed", "stopped", "finished", "empty"];

/** What a column is sorted by; nothing sorts last, whichever way. */
function keyOf(run, column) {
  if (column === "name") return run.name.toLowerCase();
  if (column === "status") return STATUS_ORDER.indexOf(run.status);
  if (column === "progress") return run.steps ? run.step / run.steps : null;
  return run[column] ?? null;
}

export function sorted(runs, column, descending) {
  const way = descending ? -1 : 1;
  return [...runs].sort((a, b) => {
    const [x, y] = [keyOf(a, column), keyOf(b, column)];
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
    if (x === y) return a.name < b.name ? -1 : 1;
    return x < y ? -way : way;
  });
}

/** `status:running` replaces another status in the text, and leaves it where it was there already. */
export function withStatus(text, status) {
  const rest = text.split(/\s+/).filter((word) => word && !word.startsWith("status:"));
  return (status ? [...rest, `status:${status}`] : rest).join(" ");
}

export const statusIn = (text) => (text.match(/(?:^|\s)status:(\S+)/) || [])[1] || null;
