/**
 * Limits the states of a grammar. The library computes a token mask for every state when it compiles, which takes tens
 * of milliseconds for a state that most tokens fit. So counts, bounds and patterns are enforced while a budget lasts;
 * beyond it counts become "or more", and the client's validator checks the rest.
 */

/** Budget units of a state that few tokens fit, and of a state that most tokens fit. */
const NARROW_UNITS = 1;
const WIDE_UNITS = 32;

/** Total for a grammar: 32 wide states compile in about a second on a slow core. */
const BUDGET_UNITS = 1024;

/** The remaining budget; one per grammar. */
export interface Budget {
  units: number;
}

export const makeBudget = (): Budget => ({ units: BUDGET_UNITS });

/** Copies of an expression, `{min,max}`, and the number of states per copy. */
export interface Copies {
  readonly min: number;
  readonly max: number;
  readonly narrow: number;
  readonly wide: number;
}

/** Budget units of a state of a key that most tokens fit, of a number with bounds, and of a string with a pattern. */
const PRICES = { state: WIDE_UNITS, bounds: 20, pattern: 8 } as const;

/** Returns whether the budget allows this many. */
export const affords = (budget: Budget, item: keyof typeof PRICES, count: number): boolean =>
  budget.units >= PRICES[item] * count;

/** Pays for one; false if the budget does not allow it. */
export function pay(budget: Budget, item: keyof typeof PRICES): boolean {
  if (!affords(budget, item, 1)) return false;
  budget.units -= PRICES[item];
  return true;
}

/** The counts that the budget allows; charges for them. */
export function affordable(budget: Budget, { min, max, narrow, wide }: Copies): { min: number; max: number } {
  const unit = Math.max(1, narrow * NARROW_UNITS + wide * WIDE_UNITS);
  const most = Math.floor(budget.units / unit);
  const copies = Number.isFinite(max) ? max : min;
  const exact = copies <= Math.max(most, 1);
  const from = exact ? min : Math.min(min, most);
  budget.units = Math.max(0, budget.units - unit * (exact ? copies : from));
  return { min: from, max: exact ? max : Infinity };
}

/** Copies of an expression, with counts as far as the budget allows. */
export function repeat(budget: Budget, expression: string, copies: Copies): string {
  const { min, max } = affordable(budget, copies);
  if (max === 0) return '""';
  if (min === 1 && max === 1) return `(${expression})`;
  if (min === 0 && max === 1) return `(${expression})?`;
  if (max === Infinity && min <= 1) return `(${expression})${min === 0 ? "*" : "+"}`;
  return `(${expression}){${min},${Number.isFinite(max) ? max : ""}}`;
}
