/**
 * Penalties for tokens seen lately: repeat, presence, frequency. From `llama_sampler_penalties` of llama.cpp
 * (`src/llama-sampling.cpp`).
 */
import type { SamplingOptions } from "./options.ts";

interface Penalties {
  /** Notes a token of the prompt or the answer. */
  accept(id: number): void;
  /** Lowers the logits of what was seen, in place. */
  apply(logits: Float32Array): void;
}

const FLOAT32_MAX = 3.4028234663852886e38;

/** Undefined where the options penalize nothing. */
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
  const counts = new Int32Array(parts.vocabSize); // of each id in the ring
  let seen = 0;

  const accept = (id: number): void => {
    if (id < 0 || id >= counts.length) return;
    const at = seen % span;
    if (seen >= span) counts[recent[at]!]!--;
    recent[at] = id;
    counts[id]!++;
    seen++;
  };

  const apply = (logits: Float32Array): void => {
    const held = Math.min(seen, span);
    for (let i = 0; i < held; i++) {
      const id = recent[i]!;
      const count = counts[id]!;
      if (count < 0) continue; // done; the sign is the mark
      counts[id] = -count;
      if (id === spared) continue;
      const logit = logits[id]!;
      const scaled = logit <= 0 ? logit * repeat : logit / repeat;
      const lowered = scaled - presence - count * frequency;
      logits[id] = logit === -Infinity ? logit : Math.max(-FLOAT32_MAX, Math.min(FLOAT32_MAX, lowered));
    }
    for (let i = 0; i < held; i++) counts[recent[i]!] = Math.abs(counts[recent[i]!]!);
  };
  return { accept, apply };
}
