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
  /** The divergence of each position in nats, Σ (got − expected)² of its logits, and −ln p of the next token. */
  readonly each: {
    readonly kl: readonly number[];
    readonly error: readonly number[];
    readonly loss: readonly number[];
  };
}

/** A ratio and its standard error, with positions taken as independent. */
export interface Ratio {
  readonly value: number;
  readonly error: number;
}

/** Σ ours / Σ theirs. */
export function ratioOfSums(ours: readonly number[], theirs: readonly number[]): Ratio {
  const total = sum(theirs);
  const value = sum(ours) / total;
  return { value, error: Math.sqrt(sum(ours.map((each, i) => (each - value * theirs[i]!) ** 2))) / total };
}

/** e to the mean of ours − theirs: the ratio of perplexities for losses, of geometric means for logarithms. */
export function ratioOfMeans(ours: readonly number[], theirs: readonly number[]): Ratio {
  const apart = ours.map((each, i) => each - theirs[i]!);
  const mean = sum(apart) / apart.length;
  const value = Math.exp(mean);
  return { value, error: (value * Math.sqrt(sum(apart.map((each) => (each - mean) ** 2)))) / apart.length };
}

const sum = (list: readonly number[]): number => list.reduce((total, each) => total + each, 0);

/** Accumulates the differences between rows of logits. */
export class Differences {
  #power = 0;
  #equal = 0;
  readonly #kl: number[] = [];
  readonly #error: number[] = [];
  readonly #loss: number[] = [];

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
    let [sumQ, sumP, cross, error] = [0, 0, 0, 0];
    for (let i = 0; i < got.length; i++) {
      const [q, p] = [got[i]!, expected[i]!];
      error += (q - p) ** 2;
      this.#power += p ** 2;
      sumQ += Math.exp(q - maxQ);
      const weight = Math.exp(p - maxP);
      sumP += weight;
      cross += weight * (p - maxP - (q - maxQ));
    }
    this.#error.push(error);
    this.#kl.push(Math.max(0, cross / sumP - Math.log(sumP) + Math.log(sumQ)));
    this.#equal += Number(ours === theirs);
    if (next !== undefined) this.#loss.push(Math.log(sumQ) + maxQ - got[next]!);
  }

  result(): Difference {
    const [kl, error, loss] = [this.#kl, this.#error, this.#loss];
    return {
      positions: kl.length,
      nmse: sum(error) / this.#power,
      top1: this.#equal / kl.length,
      kl: sum(kl) / kl.length,
      klMax: kl.reduce((most, each) => Math.max(most, each), 0),
      perplexity: Math.exp(sum(loss) / loss.length),
      each: { kl, error, loss },
    };
  }
}

export function argmax(logits: Float32Array): number {
  let best = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i]! > logits[best]!) best = i;
  return best;
}
