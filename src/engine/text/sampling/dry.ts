/**
 * DRY, "don't repeat yourself": lowers each token that would continue a repetition, the more the longer it is. From
 * `llama_sampler_dry` of llama.cpp (`src/llama-sampler.cpp`).
 */
import type { Breakers } from "./dry-breakers.ts";
import type { SamplingOptions } from "./options.ts";

const FLOAT32_MAX = 3.4028234663852886e38;
const FLOAT32_MAX_LOG = 88.7228391;

export interface Dry {
  /** Records a token of the prompt or the answer. */
  accept(id: number): void;
  /** The ids whose logits are lowered, and by how much. Reused by the next call. */
  lowered(): ReadonlyMap<number, number>;
  /** Lowers their logits, in place. */
  apply(logits: Float32Array): void;
  /** As `apply`, for some tokens and their logits. */
  applyTo(ids: Int32Array, logits: Float32Array | Float64Array, length: number): void;
  /** Copies the record of another instance with the same options. */
  follow(other: Dry): void;
  /** The last ids as a ring, and their total number. */
  readonly seen: { readonly recent: Int32Array; readonly total: number };
}

/** Undefined if the options turn it off. */
export function makeDry(
  options: SamplingOptions,
  { ctxLen, breakers }: { readonly ctxLen: number; readonly breakers: Breakers },
): Dry | undefined {
  const { dry_multiplier: multiplier, dry_base: base, dry_allowed_length: given, dry_penalty_last_n: lastN } = options;
  const span = lastN < 0 ? ctxLen : Math.min(lastN, ctxLen);
  if (multiplier === 0 || base < 1 || span === 0) return undefined;
  const allowed = Math.max(0, given);
  const exponentMax = base > 1.000001 ? Math.trunc(FLOAT32_MAX_LOG / Math.log(base)) : 0;
  const recent = new Int32Array(span);
  const counts = new Int32Array(span);
  const lowered = new Map<number, number>();
  let total = 0;

  /** The id `i` positions before the last one. */
  const fromEnd = (i: number): number => recent[(total - 1 - i) % span]!;

  const measure = (): void => {
    const count = Math.min(total, span);
    if (count <= allowed) return;
    const limit = repeatLimit({ count, fromEnd, breakers });
    if (limit < allowed) return;
    repeatsOf(counts, { count, limit, fromEnd });
    for (let k = 1; k < count; k++) {
      if (counts[k]! < allowed) continue;
      const next = fromEnd(k - 1); // it followed the earlier occurrence
      lowered.set(next, Math.max(lowered.get(next) ?? 0, counts[k]!));
    }
    for (const [id, length] of lowered) {
      if (breakers.get(id)?.some((tail) => tail.length === 0)) lowered.delete(id);
      else lowered.set(id, penaltyOf(length - allowed));
    }
  };
  const penaltyOf = (repeat: number): number => {
    const exponent = exponentMax > 0 ? Math.min(repeat, exponentMax) : repeat;
    return multiplier * base ** exponent;
  };

  const measured = (): ReadonlyMap<number, number> => {
    lowered.clear();
    measure();
    return lowered;
  };

  return {
    accept(id) {
      recent[total++ % span] = id;
    },
    lowered: measured,
    apply(logits) {
      for (const [id, penalty] of measured()) logits[id] = loweredBy(logits[id]!, penalty);
    },
    applyTo(ids, logits, length) {
      const penalties = measured();
      for (let i = 0; i < length; i++) logits[i] = loweredBy(logits[i]!, penalties.get(ids[i]!) ?? 0);
    },
    follow(other) {
      recent.set(other.seen.recent);
      total = other.seen.total;
    },
    get seen() {
      return { recent, total };
    },
  };
}

const loweredBy = (logit: number, penalty: number): number =>
  logit === -Infinity ? logit : Math.max(-FLOAT32_MAX, Math.min(FLOAT32_MAX, logit - penalty));

interface Recent {
  readonly count: number;
  readonly fromEnd: (i: number) => number;
}

/** The longest repetition that counts: up to the last sequence breaker. */
function repeatLimit({ count, fromEnd, breakers }: Recent & { readonly breakers: Breakers }): number {
  if (breakers.size === 0) return count;
  for (let i = 0; i < count; i++) {
    let longest = -1;
    for (const tail of breakers.get(fromEnd(i)) ?? []) {
      const fits = tail.length > longest && tail.length <= i;
      if (fits && tail.every((id, offset) => id === fromEnd(i - offset - 1))) longest = tail.length;
    }
    if (longest >= 0) return i - longest;
  }
  return count;
}

/**
 * Sets `counts[k]` to the number of ids, at most `limit`, that end k positions before the end and equal the last ids.
 */
function repeatsOf(counts: Int32Array, { count, limit, fromEnd }: Recent & { readonly limit: number }): void {
  let [left, right] = [0, 0]; // the window of the Z-algorithm
  for (let k = 1; k < count; k++) {
    const inside = k <= right ? right - k + 1 : 0;
    if (inside > 0 && counts[k - left]! < inside) {
      counts[k] = Math.min(counts[k - left]!, limit);
      continue;
    }
    let end = inside > 0 ? right + 1 : k;
    while (end < count && fromEnd(end) === fromEnd(end - k)) end++;
    counts[k] = Math.min(end - k, limit);
    if (inside > 0 || end > k) [left, right] = [k, end - 1];
  }
}
