/**
 * The candidates of a draw, and ways to select them from a whole vocabulary without sorting it: the k best by a heap,
 * the nucleus by a histogram of probability mass, or everything above a cutoff.
 *
 * Candidates are ordered by one number per token, `key`: the bits of the logit above, the id below, so that smaller
 * means likelier, and equal logits are ordered by id. A logit of −∞ (masked) is never a candidate; NaN and +∞ are
 * refused.
 */
import { AppError, assert } from "../../../base/index.ts";
import type { TopK } from "./top-k.ts";

/** Candidates in struct-of-arrays form; arrays grow and are reused from token to token. */
export interface Candidates {
  length: number;
  /** Sort keys, of use during selection only. */
  keys: Float64Array;
  /** (length) token ids, likeliest first, except after `selectAll`. */
  ids: Int32Array;
  /** (length) logits. */
  logits: Float64Array;
  /** (length) exp(logit − the largest logit of the vocabulary). */
  weights: Float64Array;
  /** Sum of the weights of the whole distribution; after `selectNucleus` it exceeds the candidates' sum. */
  sum: number;
}

const ID_SPAN = 2 ** 21; // 32 bits of logit and 21 of id fill a double's 53
const HEAP_MAX = 4096; // with more, sorting all keys is as fast
const MASS_NATS = 40; // beyond that, a token has less than 5e-18 of the likeliest token's mass
const BUCKETS_PER_NAT = 32;
const MASS_BUCKETS = MASS_NATS * BUCKETS_PER_NAT;

/** Reused between tokens: bits of a float, and mass per bucket of logits. */
export interface Scratch {
  readonly float: Float32Array;
  readonly bits: Int32Array;
  /** Allocated at first use. */
  mass: Float64Array | undefined;
}

export function makeScratch(): Scratch {
  const float = new Float32Array(1);
  return { float, bits: new Int32Array(float.buffer), mass: undefined };
}

export function makeCandidates(): Candidates {
  const none = new Float64Array(0);
  return { length: 0, keys: none, ids: new Int32Array(0), logits: none, weights: none, sum: 0 };
}

/** Makes room for n candidates; existing ones are lost. */
function reserve(c: Candidates, n: number): void {
  c.length = 0;
  if (c.keys.length >= n) return;
  c.keys = new Float64Array(n);
  c.ids = new Int32Array(n);
  c.logits = new Float64Array(n);
  c.weights = new Float64Array(n);
}

/** Lowest id among the largest logits. */
export function argmax(logits: Float32Array): number {
  let best = -Infinity;
  let id = -1;
  for (let i = 0; i < logits.length; i++) {
    if (logits[i]! <= best) continue; // false for NaN, which reaches the check
    checkLogit(logits, i);
    best = logits[i]!;
    id = i;
  }
  if (id < 0) throw noCandidates();
  return id;
}

/** The k likeliest tokens, sorted. */
export function selectTop(c: Candidates, logits: Float32Array, options: { k: number; scratch: Scratch }): void {
  const { scratch } = options;
  const k = Math.min(options.k, logits.length);
  if (k > HEAP_MAX) {
    selectAbove(c, logits, { cutoff: -Infinity, scratch });
    return truncate(c, k);
  }
  reserve(c, k);
  const { keys } = c;
  let n = 0;
  let least = -Infinity; // smallest logit in a full heap
  for (let i = 0; i < logits.length; i++) {
    if (logits[i]! <= least) continue;
    checkLogit(logits, i);
    const key = keyOf(scratch, logits[i]!, i);
    if (n < k) siftUp(keys, n++, key);
    else siftDown(keys, n, key);
    if (n === k) least = logits[idOf(keys[0]!)]!;
  }
  for (let end = n - 1; end > 0; end--) {
    const worst = keys[0]!;
    siftDown(keys, end, keys[end]!);
    keys[end] = worst;
  }
  c.length = n;
  finish(c, scratch);
}

/** Every token whose logit is at least `cutoff` and not −∞, sorted. */
export function selectAbove(c: Candidates, logits: Float32Array, options: { cutoff: number; scratch: Scratch }): void {
  reserve(c, logits.length);
  const { keys } = c;
  let n = 0;
  for (let i = 0; i < logits.length; i++) {
    if (logits[i]! < options.cutoff || logits[i] === -Infinity) continue;
    checkLogit(logits, i);
    keys[n++] = keyOf(options.scratch, logits[i]!, i);
  }
  keys.subarray(0, n).sort();
  c.length = n;
  finish(c, options.scratch);
}

/** As `selectTop`, from tokens that are known to include those k. */
export function selectFromTopK(c: Candidates, { ids, logits }: TopK, options: { k: number; scratch: Scratch }): void {
  reserve(c, ids.length);
  const { keys } = c;
  let n = 0;
  for (let i = 0; i < ids.length; i++) {
    if (logits[i] === -Infinity) continue;
    checkLogit(logits, i);
    keys[n++] = keyOf(options.scratch, logits[i]!, ids[i]!);
  }
  keys.subarray(0, n).sort();
  c.length = Math.min(n, options.k);
  finish(c, options.scratch);
}

/** Every token whose logit is not −∞, by id: for a draw without truncation. */
export function selectAll(c: Candidates, logits: Float32Array): void {
  reserve(c, logits.length);
  const max = logits[argmax(logits)]!;
  let n = 0;
  c.sum = 0;
  for (let i = 0; i < logits.length; i++) {
    if (logits[i] === -Infinity) continue;
    c.ids[n] = i;
    c.logits[n] = logits[i]!;
    c.weights[n] = Math.exp(logits[i]! - max);
    c.sum += c.weights[n++]!;
  }
  c.length = n;
}

/**
 * Sorted candidates that include the nucleus: the smallest set of likeliest tokens with a share of at least `topP`.
 * `sum` covers the whole vocabulary. A histogram of the mass finds the cutoff, so that only the nucleus is sorted.
 */
export function selectNucleus(c: Candidates, logits: Float32Array, options: { topP: number; scratch: Scratch }): void {
  const { scratch, topP } = options;
  const mass = (scratch.mass ??= new Float64Array(MASS_BUCKETS));
  const max = logits[argmax(logits)]!;
  mass.fill(0);
  for (let i = 0; i < logits.length; i++) {
    const below = max - logits[i]!;
    if (below < MASS_NATS) mass[(below * BUCKETS_PER_NAT) | 0]! += Math.exp(-below);
  }
  let sum = 0;
  for (let b = 0; b < MASS_BUCKETS; b++) sum += mass[b]!;
  let bucket = 0;
  for (let seen = mass[0]!; seen < topP * sum && bucket < MASS_BUCKETS - 1; seen += mass[bucket]!) bucket++;
  selectAbove(c, logits, { cutoff: max - (bucket + 1) / BUCKETS_PER_NAT, scratch });
  c.sum = Math.max(c.sum, sum);
}

/** Fills ids, logits and weights from sorted keys. */
function finish(c: Candidates, scratch: Scratch): void {
  if (c.length === 0) throw noCandidates();
  const max = logitOf(scratch, c.keys[0]!);
  let sum = 0;
  for (let i = 0; i < c.length; i++) {
    const key = c.keys[i]!;
    const logit = logitOf(scratch, key);
    c.ids[i] = idOf(key);
    c.logits[i] = logit;
    c.weights[i] = Math.exp(logit - max);
    sum += c.weights[i]!;
  }
  c.sum = sum;
}

/** Sorts candidates again whose logits have changed. */
export function resort(c: Candidates, scratch: Scratch): void {
  for (let i = 0; i < c.length; i++) c.keys[i] = keyOf(scratch, c.logits[i]!, c.ids[i]!);
  c.keys.subarray(0, c.length).sort();
  finish(c, scratch);
}

/** Keeps the first n candidates, at least one. */
export function truncate(c: Candidates, n: number): void {
  c.length = Math.max(1, Math.min(c.length, n));
  c.sum = 0;
  for (let i = 0; i < c.length; i++) c.sum += c.weights[i]!;
}

/** Index of the candidate for a number in [0, 1); each candidate occupies a range proportional to its weight. */
export function draw(c: Candidates, at: number): number {
  let sum = 0;
  for (let i = 0; i < c.length; i++) sum += c.weights[i]!;
  const wanted = at * sum;
  let seen = 0;
  for (let i = 0; i < c.length; i++) {
    seen += c.weights[i]!;
    if (wanted < seen) return i;
  }
  return c.length - 1; // rounding: at · sum reached the sum
}

/** Converts weights from temperature 1 to `temperature`. */
export function heat(c: Candidates, temperature: number): void {
  if (temperature === 1) return;
  let max = -Infinity;
  for (let i = 0; i < c.length; i++) max = Math.max(max, c.logits[i]!);
  c.sum = 0;
  for (let i = 0; i < c.length; i++) {
    c.weights[i] = Math.exp((c.logits[i]! - max) / temperature);
    c.sum += c.weights[i]!;
  }
}

function checkLogit(logits: Float32Array, id: number): void {
  if (logits[id]! < Infinity) return;
  throw new AppError("runner", `the model gave no usable logits: token ${id} of ${logits.length} has ${logits[id]}`);
}

function noCandidates(): AppError {
  return new AppError("runner", "no token can follow: every logit is −Infinity or masked");
}

/** Logit bits, in descending order of the logit, then the id. */
function keyOf({ float, bits }: Scratch, logit: number, id: number): number {
  float[0] = logit + 0; // −0 and 0 are equals
  const raw = bits[0]!;
  const rising = raw < 0 ? ~raw >>> 0 : (raw ^ 0x80000000) >>> 0;
  return (0xffffffff - rising) * ID_SPAN + id;
}

function logitOf({ float, bits }: Scratch, key: number): number {
  bits[0] = bitsOfRising(0xffffffff - Math.floor(key / ID_SPAN));
  return float[0]!;
}

/** A float's bits from their sort key: flips the sign bit if it was clear, all bits if it was set. */
export const bitsOfRising = (rising: number): number => (rising >= 0x80000000 ? rising ^ 0x80000000 : ~rising);

const idOf = (key: number): number => key % ID_SPAN;

/** Checks the assumptions of keys, once. */
export function checkVocabulary(vocabSize: number): void {
  assert(vocabSize > 0 && vocabSize <= ID_SPAN, `vocabulary of ${vocabSize} tokens, expected 1 to ${ID_SPAN}`);
}

/** Adds a key at the end of a heap whose root is the largest. */
function siftUp(heap: Float64Array, at: number, key: number): void {
  let i = at;
  while (i > 0) {
    const parent = (i - 1) >> 1;
    if (heap[parent]! >= key) break;
    heap[i] = heap[parent]!;
    i = parent;
  }
  heap[i] = key;
}

/** Replaces the root of a heap of n keys. */
function siftDown(heap: Float64Array, n: number, key: number): void {
  let i = 0;
  for (;;) {
    let child = 2 * i + 1;
    if (child >= n) break;
    if (child + 1 < n && heap[child + 1]! > heap[child]!) child++;
    if (heap[child]! <= key) break;
    heap[i] = heap[child]!;
    i = child;
  }
  heap[i] = key;
}
