/** Measured cost of decode steps by number of rows; estimates for numbers that were not measured. */

/** Estimated cost of another row, relative to a step with one row: a step reads all weights for any number of rows. */
const ROW_SHARE = 0.1;
/** Weight of a new measurement. */
const NEWEST = 0.3;
/** A step that takes this many times longer than usual was delayed by something else. */
const HELD_UP = 4;
/** The first measurement for a number of rows is limited to this many times its estimate, for the same reason. */
const FIRST_HELD_UP = 3;
/** Steps after which half the evidence on a number of rows is forgotten, so that the number is tried again. */
const HALF_LIFE = 200;

export interface DecodeCosts {
  note(rows: number, ns: number): void;
  /** Nanoseconds; undefined before a step of at most this many rows was measured. */
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
    const estimate = below && (below * thought(rows)) / thought(fewer);
    const own = known.get(rows);
    if (!own || estimate === undefined) return own?.ns ?? estimate;
    const kept = 0.5 ** ((steps - own.step) / HALF_LIFE);
    return estimate + (own.ns - estimate) * kept;
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
