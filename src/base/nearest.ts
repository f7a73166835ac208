/** Suggestions for misspelled names. */

/** Maximum edit distance of a suggestion. */
const EDITS_MAX = 2;

export function unknownKeyMessage(key: string, known: readonly string[]): string {
  const near = nearest(key, known);
  return near === undefined ? "unknown key" : `unknown key; did you mean '${near}'?`;
}

/** `what`, followed by the nearest known name, or by all names. */
export function unknownNameMessage(what: string, name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return near === undefined ? `${what}; known: ${known.join(", ")}` : `${what}: did you mean '${near}'?`;
}

/** @param known names; returns undefined if no name is near */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const near = known.map((each) => ({ each, edits: editsBetween(name.toLowerCase(), each.toLowerCase()) }));
  const [best] = near.toSorted((a, b) => a.edits - b.edits);
  return best && best.edits <= Math.min(EDITS_MAX, Math.floor(name.length / 2)) ? best.each : undefined;
}

/** Edit distance: insertions, deletions, changes, and swaps of neighbouring letters. */
function editsBetween(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, i) => [i, ...Array.from({ length: b.length }, () => 0)]);
  for (let j = 1; j <= b.length; j++) rows[0]![j] = j;
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const change = rows[i - 1]![j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = isSwap ? rows[i - 2]![j - 2]! + 1 : Infinity;
      rows[i]![j] = Math.min(rows[i - 1]![j]! + 1, rows[i]![j - 1]! + 1, change, swap);
    }
  }
  return rows[a.length]![b.length]!;
}
