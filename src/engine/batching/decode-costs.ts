/** What decode steps cost by their number of rows, as measured; steps that were not tried are guessed. */

/** What a row more is thought to cost, as a share of a step of one row: a step reads all weights, however many rows. */
const ROW_SHARE = 0.1;
/** How much a new measurement counts. */
const NEWEST = 0.3;
/** A step that took so many times as long as usual was held up by something else. */
const HELD_UP = 4;
/** The first step of so many rows counts as at most so many times what it was thought to cost, for the same reason. */
const FIRST_HELD_UP = 3;
/** Steps after which half of what is known of a number of rows is forgotten, so that it is tried again. */
const HALF_LIFE = 200;

export interface DecodeCosts {
  note(rows: number, ns: number): void;
  /** Nanoseconds; undefined before anything was measured of so few rows or fewer. */
  of(rows: number): number | undefined;
}

export function makeDecodeCosts(): DecodeCosts {
  const known = new Map<number, { ns: number; step: number }>();
  let steps = 0;
  const thought = (rows: number): number => 1 + ROW_SHARE * (rows - 1);
  const of = (rows: number): number | undefined => {
    let fewer = 0;
    for (const count of known.keys()) if (count < rows && count > fewer) fewer = count;
    const below = fewer > 0 ? of(fewer) : undefined;
    const guess = below && (below * thought(rows)) / thought(fewer);
    const own = known.get(rows);
    if (!own || guess === undefined) return own?.ns ?? guess;
    const kept = 0.5 ** ((steps - own.step) / HALF_LIFE);
    return guess + (own.ns - guess) * kept;
  };
  return {
    of,
    note(rows, ns) {
      steps++;
      const own = known.get(rows);
      const first = Math.min(ns, FIRST_HELD_UP * (of(rows) ?? Infinity));
      const next = own ? own.ns + NEWEST * (Math.min(ns, HELD_UP * own.ns) - own.ns) : first;
      known.set(rows, { ns: next, step: steps });
    },
  };
}
