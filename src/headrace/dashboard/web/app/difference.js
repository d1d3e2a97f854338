// Where two texts differ, word by word: the longest common sequence, without the lucky matches inside a difference.
const MOST = 400; // words of a side; the table has their product of cells
const LUCKY = 2; // matching words in a row that mean nothing between two differences

const words = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];

/** Gives parts of both sides: [{text, same}], joined they are the texts. */
export function difference(left, right) {
  const [a, b] = [words(left), words(right)];
  const [keepA, keepB] = common(a.slice(0, MOST), b.slice(0, MOST));
  return [parts(a, keepA), parts(b, keepB)];
}

function common(a, b) {
  const wide = b.length + 1;
  const table = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const same = a[i] === b[j];
      table[i * wide + j] = same
        ? table[(i + 1) * wide + j + 1] + 1
        : Math.max(table[(i + 1) * wide + j], table[i * wide + j + 1]);
    }
  }
  return walk(a, b, table, wide);
}

function walk(a, b, table, wide) {
  const [keepA, keepB] = [new Set(), new Set()];
  let [i, j, row] = [0, 0, []];
  const flush = (atEdge) => {
    const real = row.filter(([at]) => a[at].trim()).length;
    if (atEdge || real > LUCKY) for (const [x, y] of row) keepA.add(x) && keepB.add(y);
    row = [];
  };
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      row.push([i++, j++]);
      continue;
    }
    flush(row.length > 0 && row[0][0] === 0 && row[0][1] === 0);
    if (table[(i + 1) * wide + j] >= table[i * wide + j + 1]) i++;
    else j++;
  }
  flush((i === a.length && j === b.length) || (row.length > 0 && row[0][0] === 0));
  return [keepA, keepB];
}

function parts(all, keep) {
  const found = [];
  all.forEach((text, at) => {
    const same = keep.has(at);
    const last = found[found.length - 1];
    if (last && last.same === same) last.text += text;
    else found.push({ text, same });
  });
  return found;
}
