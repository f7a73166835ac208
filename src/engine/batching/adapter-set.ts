/**
 * The adapters of a request in the form that runs take, and a key that separates prefixes made with different adapters.
 */
import { ADAPTERS_MAX, AppError } from "../../base/index.ts";
import type { RowAdapter } from "../program/backend.ts";

/** Scales beyond this give logits that are not finite. */
const SCALE_MAX = 100;
/** A file whose name identifies its content. */
const LASTING = /(?:^|[\\/])sha256-[0-9a-f]{64}$/;

/** An adapter that a request chooses. */
export interface AdapterChoice {
  readonly path: string;
  /** Factor on its changes. */
  readonly scale: number;
}

export interface AdapterSet {
  readonly rows: readonly RowAdapter[];
  /** Equal for equal adapters with equal scales; `NO_ADAPTERS` for an empty set. */
  readonly key: string;
}

/** The key of prefixes that were made without adapters. */
export const NO_ADAPTERS = "";

const EMPTY: AdapterSet = { rows: [], key: NO_ADAPTERS };

/**
 * The set of a request's choices; a scale of 0 leaves an adapter out. Throws `bad_request` for an adapter that is not
 * on offer or appears twice, for too many, and for a scale that is not finite or too large.
 * @param offered paths of the adapters that rows may choose
 */
export function adapterSet(choices: readonly AdapterChoice[] | undefined, offered: readonly string[]): AdapterSet {
  if (choices === undefined || choices.length === 0) return EMPTY;
  const rows = choices.map(({ path, scale }) => {
    const adapter = offered.indexOf(path);
    if (adapter < 0) throw new AppError("bad_request", `adapter '${path}': the model is loaded without it`);
    if (!(Math.abs(scale) <= SCALE_MAX)) {
      throw new AppError("bad_request", `adapter scale: expected ${-SCALE_MAX} to ${SCALE_MAX}, got ${scale}`);
    }
    return { adapter, scale };
  });
  if (new Set(rows.map(({ adapter }) => adapter)).size < rows.length) {
    throw new AppError("bad_request", "adapters: expected each one once, got one twice");
  }
  const used = rows.filter(({ scale }) => scale !== 0).toSorted((a, b) => a.adapter - b.adapter);
  if (used.length > ADAPTERS_MAX) {
    throw new AppError("bad_request", `adapters: expected at most ${ADAPTERS_MAX} in a request, got ${used.length}`);
  }
  if (used.length === 0) return EMPTY;
  return { rows: used, key: JSON.stringify(used.map(({ adapter, scale }) => [offered[adapter], scale])) };
}

/** Returns whether a key identifies the same adapters in later processes: their files are named by their content. */
export function isLasting(key: string): boolean {
  if (key === NO_ADAPTERS) return true;
  const adapters = JSON.parse(key) as readonly (readonly [path: string, scale: number])[]; // written above
  return adapters.every(([path]) => LASTING.test(path));
}
