/**
 * Penalties for recent tokens: repeat, presence, frequency. From `llama_sampler_penalties` of llama.cpp
 * (`src/llama-sampling.cpp`).
 */
import type { SamplingOptions } from "./options.ts";

export interface Penalties {
  /** Records a token of the prompt or the answer. */
  accept(id: number): void;
  /** The distinct ids whose logits are lowered. The array is reused by the next call. */
  held(): Int32Array;
  /** Lowers the logits of recorded tokens, in place. */
  apply(logits: Float32Array): void;
  /** As `apply`, for some tokens and their logits. */
  applyTo(ids: Int32Array, logits: Float32Array | Float64Array, length: number): void;
  /** Copies the record of another instance with the same options. */
  follow(other: Penalties): void;
  /** The last ids as a ring, their total number, and the count of each id in the ring. */
  readonly seen: { readonly recent: Int32Array; readonly counts: Int32Array; readonly total: number };
}

const FLOAT32_MAX = 3.4028234663852886e38;

/** Undefined if the options penalize nothing. */
export function makePenalties(
  options: SamplingOptions,
  parts: { vocabSize: number; ctxLen: number; newlineId?: number },
): Penalties | undefined {
  const { repeat_penalty, presence_penalty: presence, frequency_penalty: frequency, repeat_last_n } = options;
  const repeat = repeat_penalty > 0 ? repeat_penalty : 1;
  const span = repeat_last_n < 0 ? parts.ctxLen : Math.min(repeat_last_n, parts.ctxLen);
  if (span === 0 || (repeat === 1 && presence === 0 && frequency === 0)) return undefined;
  const spared = options.penalize_newline ? -1 : (parts.newlineId ?? -1);
  const recent = new Int32Array(span); // ring of the last ids
  const counts = new Int32Array(parts.vocabSize); // count of each id in the ring
  const distinct = new Int32Array(Math.min(span, parts.vocabSize));
  let seen = 0;

  const accept = (id: number): void => {
    if (id < 0 || id >= counts.length) return;
    const at = seen % span;
    if (seen >= span) counts[recent[at]!]!--;
    recent[at] = id;
    counts[id]!++;
    seen++;
  };

  const held = (): Int32Array => {
    let n = 0;
    for (let i = 0; i < Math.min(seen, span); i++) {
      const id = recent[i]!;
      if (counts[id]! < 0) continue; // counted already: the sign marks it
      counts[id] = -counts[id]!;
      distinct[n++] = id;
    }
    let kept = 0;
    for (let i = 0; i < n; i++) {
      const id = distinct[i]!;
      counts[id] = -counts[id]!;
      if (id !== spared) distinct[kept++] = id;
    }
    return distinct.subarray(0, kept);
  };

  const lowered = (id: number, logit: number): number => {
    const scaled = logit <= 0 ? logit * repeat : logit / repeat;
    const less = scaled - presence - counts[id]! * frequency;
    return logit === -Infinity ? logit : Math.max(-FLOAT32_MAX, Math.min(FLOAT32_MAX, less));
  };
  const apply = (logits: Float32Array): void => {
    for (const id of held()) logits[id] = lowered(id, logits[id]!);
  };
  const applyTo = (ids: Int32Array, logits: Float32Array | Float64Array, length: number): void => {
    for (let i = 0; i < length; i++) {
      const id = ids[i]!;
      if (counts[id]! > 0 && id !== spared) logits[i] = lowered(id, logits[i]!);
    }
  };
  const follow = (other: Penalties): void => {
    recent.set(other.seen.recent);
    counts.set(other.seen.counts);
    seen = other.seen.total;
  };
  return {
    accept,
    held,
    apply,
    applyTo,
    follow,
    get seen() {
      return { recent, counts, total: seen };
    },
  };
}
