/**
 * An answer that is filled in. A pass reads prompt and answer, masks included, and gives logits for the masks of a
 * block. Each mask gets a candidate; the best candidates, as many as the plan says, become tokens.
 */
import type { DiffusionTraits } from "../program/diffusion.ts";
import type { DiffusionAlgorithm } from "../text/sampling/diffusion-options.ts";
import type { DiffusionPass } from "./diffusion-plan.ts";

/** Ranks a candidate by the logits of its position, (vocabSize); more is better. */
export type Rank = (logits: Float32Array, id: number) => number;

export interface DenoisingParts {
  /** At least one token. */
  readonly prompt: Int32Array;
  /** Number of tokens to fill in. */
  readonly length: number;
  readonly traits: DiffusionTraits;
  readonly passes: readonly DiffusionPass[];
  /** Chooses a token, never the mask. @param logits (vocabSize); may be changed */
  readonly choose: (logits: Float32Array) => number;
  readonly rank: Rank;
}

interface Candidate {
  readonly position: number;
  readonly id: number;
  readonly rank: number;
}

export class Denoising {
  /** Prompt and answer: the input of the next pass. */
  readonly tokens: Int32Array;
  readonly #parts: DenoisingParts;
  #next = 0;
  #known = 0;
  #candidates: Candidate[] = [];
  #before = new Float32Array(0);

  constructor(parts: DenoisingParts) {
    const { prompt, length, traits } = parts;
    this.#parts = parts;
    this.tokens = new Int32Array(prompt.length + length).fill(traits.mask);
    this.tokens.set(prompt);
  }

  get done(): boolean {
    return this.#next >= this.#parts.passes.length;
  }

  /** Tokens of the answer before its first mask. */
  get known(): number {
    const { prompt, traits, length } = this.#parts;
    while (this.#known < length && this.tokens[prompt.length + this.#known] !== traits.mask) this.#known++;
    return this.#known;
  }

  /** Positions of the masks that the next pass considers. */
  get masks(): number[] {
    const { prompt, passes, traits } = this.#parts;
    const { from, end } = passes[this.#next]!;
    const positions = Array.from({ length: end - from }, (_, i) => prompt.length + from + i);
    return positions.filter((position) => this.tokens[position] === traits.mask);
  }

  /** The row of a pass that has a position's logits. */
  rowOf(position: number): number {
    return this.#parts.traits.shifts ? position - 1 : position;
  }

  /** Considers one of `masks`, in their order. @param logits (vocabSize); changed */
  consider(position: number, logits: Float32Array): void {
    if (this.#before.length !== logits.length) this.#before = new Float32Array(logits.length);
    this.#before.set(logits);
    const id = this.#parts.choose(logits);
    this.#candidates.push({ position, id, rank: this.#parts.rank(this.#before, id) });
  }

  /** Ends a pass: the best candidates become tokens. */
  finishPass(): void {
    const { count } = this.#parts.passes[this.#next++]!;
    const best = this.#candidates.toSorted((a, b) => b.rank - a.rank || a.position - b.position).slice(0, count);
    for (const { position, id } of best) this.tokens[position] = id;
    this.#candidates = [];
  }
}

/** @param random a number of [0, 1) */
export function rankBy(algorithm: DiffusionAlgorithm, random: () => number): Rank {
  switch (algorithm) {
    case "confidence":
      return (logits, id) => Math.exp(logits[id]! - largest(logits)) / sumOf(logits);
    case "margin":
      return margin;
    case "entropy":
      return (logits) => -entropyOf(logits);
    case "random":
      return random;
    default:
      return algorithm satisfies never;
  }
}

function largest(logits: Float32Array): number {
  let most = -Infinity;
  for (let i = 0; i < logits.length; i++) if (logits[i]! > most) most = logits[i]!;
  return most;
}

/** Σ exp(logit − largest) */
function sumOf(logits: Float32Array): number {
  const most = largest(logits);
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += Math.exp(logits[i]! - most);
  return sum;
}

/** The probability of the likeliest token minus that of the second. */
function margin(logits: Float32Array): number {
  let [first, second] = [-Infinity, -Infinity];
  for (let i = 0; i < logits.length; i++) {
    const logit = logits[i]!;
    if (logit <= second) continue;
    if (logit > first) [first, second] = [logit, first];
    else second = logit;
  }
  return (1 - Math.exp(second - first)) / sumOf(logits);
}

/** −Σ p · ln p */
function entropyOf(logits: Float32Array): number {
  const most = largest(logits);
  let [sum, weighted] = [0, 0];
  for (let i = 0; i < logits.length; i++) {
    const x = logits[i]! - most;
    const p = Math.exp(x);
    sum += p;
    weighted += p > 0 ? p * x : 0;
  }
  return Math.log(sum) - weighted / sum;
}
