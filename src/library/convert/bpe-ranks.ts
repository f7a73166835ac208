/**
 * Vocabularies whose ids are the ranks of byte-pair encoding: a token is merged from the two parts that remain once all
 * pairs of a lower rank are merged. Pieces are in GPT-2's alphabet, a character per byte.
 */

/** For each piece of two parts or more, the pair that becomes it, as `a b`. */
export function mergesOf(pieces: readonly string[]): string[] {
  const ranks = new Map(pieces.map((piece, rank) => [piece, rank]));
  return pieces.flatMap((piece, rank) => {
    if (piece.length === 1) return [];
    const parts = partsOf(piece, (pair) => {
      const found = ranks.get(pair) ?? Infinity;
      return found < rank ? found : Infinity;
    });
    return parts.length === 2 ? [parts.join(" ")] : [];
  });
}

/**
 * Merges the pairs of a piece, the lowest rank first; returns the remaining parts.
 * @param rankOf returns Infinity for a pair that is not merged
 */
export function partsOf(piece: string, rankOf: (pair: string) => number): string[] {
  const parts = piece.split("");
  const pairAt = (i: number): number => (i < 0 || i + 1 >= parts.length ? Infinity : rankOf(parts[i]! + parts[i + 1]!));
  const found = parts.map((_, i) => pairAt(i));
  for (;;) {
    let best = 0;
    for (let i = 1; i < found.length; i++) if (found[i]! < found[best]!) best = i;
    if (found[best] === Infinity) return parts;
    parts.splice(best, 2, parts[best]! + parts[best + 1]!);
    found.splice(best, 1);
    found[best] = pairAt(best);
    if (best > 0) found[best - 1] = pairAt(best - 1);
  }
}
