/** The distance of logits from a reference, over the whole vocabulary, at many positions. */

export interface Difference {
  readonly positions: number;
  /** Σ (got − expected)² / Σ expected², of all logits. */
  readonly nmse: number;
  /** Share of positions with the same likeliest token. */
  readonly top1: number;
  /** Σ p ln(p / q), p the reference's probabilities: the mean over positions, in nats. */
  readonly kl: number;
  /** The same at the worst position. */
  readonly klMax: number;
  /** Our perplexity, over the tokens that were passed. */
  readonly perplexity: number;
}

/** Accumulates the differences between rows of logits. */
export class Differences {
  #error = 0;
  #power = 0;
  #equal = 0;
  #kl = 0;
  #klMax = 0;
  #positions = 0;
  #loss = 0;
  #tokens = 0;

  readonly #vocabSize: number;

  constructor(vocabSize: number) {
    this.#vocabSize = vocabSize;
  }

  /**
   * @param got as many rows as `expected`, (positions, vocabSize) each
   * @param next the tokens that follow the rows in a text; the last row may lack one
   */
  add(got: Float32Array, expected: Float32Array, next: ArrayLike<number> = []): void {
    if (got.length !== expected.length) throw new Error(`${got.length} logits, expected ${expected.length}`);
    for (let at = 0, row = 0; at < got.length; at += this.#vocabSize, row++) {
      const end = at + this.#vocabSize;
      this.#addRow(got.subarray(at, end), expected.subarray(at, end), next[row]);
    }
  }

  #addRow(got: Float32Array, expected: Float32Array, next: number | undefined): void {
    const [ours, theirs] = [argmax(got), argmax(expected)];
    const [maxQ, maxP] = [got[ours]!, expected[theirs]!];
    let [sumQ, sumP, cross] = [0, 0, 0];
    for (let i = 0; i < got.length; i++) {
      const [q, p] = [got[i]!, expected[i]!];
      this.#error += (q - p) ** 2;
      this.#power += p ** 2;
      sumQ += Math.exp(q - maxQ);
      const weight = Math.exp(p - maxP);
      sumP += weight;
      cross += weight * (p - maxP - (q - maxQ));
    }
    const kl = Math.max(0, cross / sumP - Math.log(sumP) + Math.log(sumQ));
    this.#kl += kl;
    this.#klMax = Math.max(this.#klMax, kl);
    this.#equal += Number(ours === theirs);
    this.#positions++;
    if (next === undefined) return;
    this.#loss += Math.log(sumQ) + maxQ - got[next]!;
    this.#tokens++;
  }

  result(): Difference {
    const positions = this.#positions;
    return {
      positions,
      nmse: this.#error / this.#power,
      top1: this.#equal / positions,
      kl: this.#kl / positions,
      klMax: this.#klMax,
      perplexity: Math.exp(this.#loss / this.#tokens),
    };
  }
}

export function argmax(logits: Float32Array): number {
  let best = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i]! > logits[best]!) best = i;
  return best;
}
