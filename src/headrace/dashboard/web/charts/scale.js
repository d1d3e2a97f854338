// Ranges and ticks. Plotly is given these too, so that it takes over from the first drawing without a jump.
export const MARGIN = { left: 54, right: 14, top: 10, bottom: 28 };

const TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800];

const finite = (value) => typeof value === "number" && Number.isFinite(value);

export function extent(lists, above = -Infinity) {
  let [low, high] = [Infinity, -Infinity];
  for (const list of lists) {
    for (const value of list) {
      if (!finite(value) || value <= above) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : null;
}

/** Room above and below, so that no line lies on the frame. */
function padded([low, most], { zero = false, log = false, ceiling = null, least = null }) {
  const high = least === null ? most : Math.max(most, least);
  if (log) return low === high ? [low / 2, high * 2] : [low / (high / low) ** 0.06, high * (high / low) ** 0.06];
  const bottom = zero ? Math.min(0, low) : low;
  const room = (high - bottom || Math.abs(high) || 1) * 0.06;
  const top = ceiling === null ? high + room : Math.min(high + room, ceiling);
  return [zero && low >= 0 ? 0 : bottom - room, top];
}

export function ticks([low, high], wanted, { log = false, time = false }) {
  if (log) return logTicks(low, high, wanted);
  const rough = (high - low) / Math.max(1, wanted);
  const step = (time && TIMES.find((seconds) => seconds >= rough * 0.8 && rough > 0.8)) || niceStep(rough);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at++)
    found.push(Number((at * step).toPrecision(12)));
  return found;
}

function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough || 1));
  const part = rough / power;
  return power * (part < 1.41 ? 1 : part < 3.16 ? 2 : part < 7.07 ? 5 : 10);
}

function logTicks(low, high, wanted) {
  const decades = Math.log10(high / low);
  const parts = [[1, 1.5, 2, 3, 4, 5, 6, 8], [1, 2, 5], [1, 3], [1]].find(
    (some) => decades * some.length <= wanted * 1.4,
  ) || [1];
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const part of parts) {
      const value = Number((part * 10 ** power).toPrecision(6));
      if (value >= low && value <= high) found.push(value);
    }
  }
  return found.length < 2 ? ticks([low, high], wanted, {}) : found;
}

/** Words for ticks; how far they are apart decides how many digits a number needs. */
export function labels(values, { format, log }) {
  const step = log || values.length < 2 ? undefined : values[1] - values[0];
  return values.map((value) => format(value, step));
}

/** Both ranges and both lists of ticks of a drawing of this size. */
export function frame(spec, wide, high) {
  const x =
    spec.x.range ||
    spaced(
      extent(
        spec.series.map((one) => one.x),
        spec.x.log ? 0 : -Infinity,
      ) || [0, 1],
      spec.x.log,
    );
  const y = spec.y.range || padded(extent(spec.series.flatMap(heights), spec.y.log ? 0 : -Infinity) || [0, 1], spec.y);
  return {
    x,
    y,
    xTicks: ticks(x, Math.max(2, Math.floor((wide - MARGIN.left) / 96)), spec.x),
    yTicks: ticks(y, Math.max(2, Math.floor(high / 50)), spec.y),
  };
}

const heights = (one) => (one.low ? [one.low, one.high] : [one.y]);
const spaced = ([low, high], log) => (low === high ? (log ? [low / 2, high * 2] : [low - 1, high + 1]) : [low, high]);
