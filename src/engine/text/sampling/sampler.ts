/**
 * Samples the next token: biases, suppressed tokens, a grammar's mask, then the samplers in their order (chain.ts), or
 * temperature → mirostat, then one draw. A sampler belongs to one sequence and has no shared state: its draws
 * depend only on its seed and the number of earlier draws.
 */
import { makeRng, randomSeed, type Rng } from "../rng.ts";
import { argmax, checkVocabulary, draw, makeCandidates, makeScratch, selectFromTopK } from "./candidates.ts";
import { isGreedy, makeStages, type Draw } from "./chain.ts";
import type { Breakers } from "./dry-breakers.ts";
import { makeDry, type Dry } from "./dry.ts";
import { makeLogitBias } from "./logit-bias.ts";
import { drawMirostat, type Mirostat } from "./mirostat.ts";
import type { TopK, TopKLimits, TopKRequest } from "./top-k.ts";
import type { SamplingOptions } from "./options.ts";
import { makePenalties, type Penalties } from "./penalties.ts";

const NO_IDS = new Int32Array(0);

export interface Sampler {
  /**
   * The next id.
   * @param logits (vocabSize); changed in place
   * @param mask one bit per id, bit `id & 31` of word `id >> 5`; 0: the id may not follow
   * Throws `runner` if the logits are unusable: NaN, +∞, or all masked.
   */
  sample(logits: Float32Array, mask?: Int32Array): number;
  /**
   * The candidates that are enough for `choose` to return the same id as `sample`; undefined: all logits are needed.
   */
  topKRequest(limits: TopKLimits): TopKRequest | undefined;
  /** The next id, from the requested candidates. Throws as `sample` does. */
  choose(top: TopK): number;
  /** Records a token of the prompt or the answer for the penalties. */
  accept(id: number): void;
  /**
   * A look-ahead sampler for a draft model's logits, which chooses like this one will. This sampler stays unchanged.
   */
  ahead(): Ahead;
}

/** A sampler's upcoming choices. */
export interface Ahead {
  /** Resets the look-ahead to the sampler's state. */
  begin(): void;
  /** The id after the previous one, which is recorded. @param logits changed in place */
  next(logits: Float32Array): number;
}

interface SamplerParts {
  readonly vocabSize: number;
  readonly ctxLen: number;
  readonly newlineId?: number;
  /** Distinct ids that are never chosen; default none. */
  readonly suppressed?: Int32Array;
  /** Tokens of `dry_sequence_breakers`; default none. */
  readonly breakers?: Breakers;
}

interface State {
  readonly addBias: ((logits: Float32Array) => void) | undefined;
  readonly penalties: Penalties | undefined;
  readonly dry: Dry | undefined;
  readonly rng: Rng;
  readonly mirostat: Mirostat | undefined;
}

/** Throws `bad_request` if a bias is for a token that the model does not have. */
export function makeSampler(options: SamplingOptions, parts: SamplerParts): Sampler {
  checkVocabulary(parts.vocabSize);
  return makeChain(makeState(options, parts), { options, parts });
}

function makeState(options: SamplingOptions, parts: SamplerParts): State {
  const mirostat = makeMirostat(options);
  return {
    addBias: makeLogitBias(options.logit_bias, parts.vocabSize),
    // mirostat replaces all samplers except the temperature
    penalties: mirostat ? undefined : makePenalties(options, parts),
    dry: mirostat ? undefined : makeDry(options, { breakers: new Map(), ...parts }),
    rng: makeRng(options.seed === -1 ? randomSeed() : options.seed),
    mirostat,
  };
}

function makeChain(
  state: State,
  { options, parts }: { readonly options: SamplingOptions; readonly parts: SamplerParts },
): Sampler {
  const { addBias, penalties, dry, rng, mirostat } = state;
  const scratch = makeScratch();
  const suppressed = (parts.suppressed ?? NO_IDS).filter((id) => id < parts.vocabSize);
  const greedy = isGreedy(options) || (mirostat !== undefined && options.temperature <= 0);
  const chain = makeStages({ options, penalties, dry, scratch, random: () => rng.float() });
  const at: Draw = { logits: new Float32Array(0), candidates: makeCandidates(), isSelected: false, count: 0 };

  const drawn = (): number => at.candidates.ids[draw(at.candidates, rng.float())]!;
  const sample = (logits: Float32Array, mask?: Int32Array): number => {
    addBias?.(logits);
    for (const id of suppressed) logits[id] = -Infinity;
    if (mask) applyMask(logits, mask);
    if (greedy) {
      penalties?.apply(logits);
      dry?.apply(logits);
      return argmax(logits);
    }
    if (mirostat) {
      coolLogits(logits, options.temperature);
      return drawMirostat(mirostat, { candidates: at.candidates, logits, scratch, rng });
    }
    at.logits = logits;
    at.isSelected = false;
    at.count = logits.length;
    chain.run(at);
    return drawn();
  };
  const top = greedy ? 1 : topOf(options);
  const k = Math.min(top, parts.vocabSize);
  const topKRequest = (limits: TopKLimits): TopKRequest | undefined => {
    if (addBias || options.top_n_sigma > 0 || top === Infinity || k > limits.k) return undefined;
    const masked = joined(penalties?.held() ?? NO_IDS, suppressed, dry?.lowered().keys());
    return masked.length > limits.masked ? undefined : { k, masked };
  };
  const choose = (top: TopK): number => {
    penalties?.applyTo(top.ids, top.logits, top.ids.length);
    dry?.applyTo(top.ids, top.logits, top.ids.length);
    suppressIn(top, suppressed);
    selectFromTopK(at.candidates, top, { k, scratch });
    if (greedy) return at.candidates.ids[0]!;
    at.isSelected = true;
    at.count = k;
    chain.runAfterTop(at);
    return drawn();
  };
  const accept = (id: number): void => {
    penalties?.accept(id);
    dry?.accept(id);
  };
  return { sample, topKRequest, choose, accept, ahead: () => makeAhead(state, { options, parts }) };
}

function makeAhead(
  state: State,
  { options, parts }: { readonly options: SamplingOptions; readonly parts: SamplerParts },
): Ahead {
  const own = makeState(options, parts);
  const chain = makeChain(own, { options, parts });
  return {
    begin() {
      if (state.penalties) own.penalties?.follow(state.penalties);
      if (state.dry) own.dry?.follow(state.dry);
      own.rng.follow(state.rng);
      if (state.mirostat && own.mirostat) own.mirostat.mu = state.mirostat.mu;
    },
    next(logits) {
      const id = chain.sample(logits);
      chain.accept(id);
      return id;
    },
  };
}

/** All ids, without duplicates. */
function joined(held: Int32Array, suppressed: Int32Array, lowered: Iterable<number> | undefined): Int32Array {
  if (suppressed.length === 0 && !lowered) return held;
  return Int32Array.from(new Set([...held, ...suppressed, ...(lowered ?? [])]));
}

function suppressIn({ ids, logits }: TopK, suppressed: Int32Array): void {
  if (suppressed.length === 0) return;
  for (let i = 0; i < ids.length; i++) if (suppressed.includes(ids[i]!)) logits[i] = -Infinity;
}

/** Number of likeliest tokens that can be chosen; Infinity: all. */
const topOf = ({ mirostat, top_k, samplers }: SamplingOptions): number =>
  mirostat === 0 && top_k > 0 && samplers === undefined ? top_k : Infinity;

function makeMirostat({ mirostat, mirostat_tau: tau, mirostat_eta: eta }: SamplingOptions): Mirostat | undefined {
  return mirostat === 0 ? undefined : { version: mirostat, tau, eta, mu: 2 * tau };
}

/** Sets the logits of all ids without a bit to −∞, including ids beyond the mask. */
export function applyMask(logits: Float32Array, mask: Int32Array): void {
  const words = Math.ceil(logits.length / 32);
  for (let w = 0; w < words; w++) {
    const bits = w < mask.length ? mask[w]! : 0;
    if (bits === -1) continue;
    const end = Math.min(logits.length, w * 32 + 32);
    for (let id = w * 32; id < end; id++) if (((bits >>> (id & 31)) & 1) === 0) logits[id] = -Infinity;
  }
}

/** Applies a temperature to all logits, relative to the largest, which prevents overflow. */
function coolLogits(logits: Float32Array, temperature: number): void {
  const max = logits[argmax(logits)]!;
  for (let i = 0; i < logits.length; i++) logits[i] = (logits[i]! - max) / temperature;
}
