// The columns of a run, as the server gives them: appended to while it runs, smoothed, put over another axis.
const NESTED = ["shares", "metrics"];

/** Adds rows that are newer than the last; a column that one side lacks has nulls there. */
export function append(columns, fresh) {
  const last = columns.steps.length ? columns.steps[columns.steps.length - 1] : -Infinity;
  const from = fresh.steps.findIndex((step) => step > last);
  if (from < 0) return 0;
  const [old, more] = [columns.steps.length, fresh.steps.length - from];
  extend(columns, fresh, old, from, more, (name) => !NESTED.includes(name));
  for (const name of NESTED) extend((columns[name] ||= {}), fresh[name] || {}, old, from, more, () => true);
  return more;
}

function extend(into, fresh, old, from, more, wanted) {
  for (const name of new Set([...Object.keys(into), ...Object.keys(fresh)])) {
    if (!wanted(name)) continue;
    const column = (into[name] ||= new Array(old).fill(null));
    const added = Array.isArray(fresh[name]) ? fresh[name].slice(from) : [];
    for (let at = 0; at < more; at++) column.push(added[at] ?? null);
  }
}

export function appendEvals(evals, fresh) {
  if (!fresh?.steps?.length) return;
  const last = evals.steps.length ? evals.steps[evals.steps.length - 1] : -Infinity;
  fresh.steps.forEach((step, at) => {
    if (step <= last) return;
    for (const name of Object.keys(evals)) evals[name].push(fresh[name]?.[at] ?? null);
  });
}

/** An exponential mean that starts at the first value instead of at nothing. */
export function smooth(values, weight) {
  if (!weight) return values;
  let [mean, mass] = [0, 0];
  return values.map((value) => {
    if (value === null || !Number.isFinite(value)) return null;
    mean = weight * mean + (1 - weight) * value;
    mass = weight * mass + (1 - weight);
    return mean / mass;
  });
}

/** Seconds since the first step, from the time that the steps took. */
export function wallTime(columns) {
  let [seconds, before] = [0, 0];
  return columns.steps.map((step, at) => {
    seconds += (columns.seconds_per_step?.[at] || 0) * (step - before);
    before = step;
    return seconds;
  });
}

/** Steps of anything onto another axis of the same run, straight between its points. */
export function onto(steps, axis, wanted) {
  let at = 0;
  return wanted.map((step) => {
    while (at < steps.length - 1 && steps[at + 1] <= step) at++;
    const [low, high] = [steps[at], steps[Math.min(at + 1, steps.length - 1)]];
    if (high === low || step <= low) return axis[at] ?? null;
    return axis[at] + ((axis[at + 1] - axis[at]) * Math.min(step - low, high - low)) / (high - low);
  });
}

export const has = (column) => Array.isArray(column) && column.some((value) => value !== null && value !== undefined);
export const lastOf = (column) => (column || []).findLast((value) => value !== null && value !== undefined) ?? null;
