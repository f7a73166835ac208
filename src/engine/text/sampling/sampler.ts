/**
 * Samples the next token: biases, suppressed tokens, penalties, then top-n-sigma → top-k → tail-free → typical-p →
 * top-p → min-p → XTC → temperature, or temperature → mirostat, then one draw. The order is llama.cpp's default chain
 * (`common/sampling.cpp`). A sampler belongs to one sequence and shares nothing: its draws depend only on its seed and
 * the number of earlier draws.
 */
import { makeRng, randomSeed, type Rng } from "../rng.ts";
import {
  argmax,
  checkVocabulary,
  draw,
  heat,
  makeCandidates,
  makeScratch,
  selectAbove,
  selectAll,
  selectNucleus,
  selectOffered,
  selectTop,
  type Candidates,
  type Scratch,
} from "./candidates.ts";
import { makeLogitBias } from "./logit-bias.ts";
import { drawMirostat, type Mirostat } from "./mirostat.ts";
import type { Offer, OfferLimits, OfferWish } from "./offer.ts";
import type { SamplingOptions } from "./options.ts";
import { makePenalties, type Penalties } from "./penalties.ts";
import { dynamicTemperature, minP, tailFree, topNSigma, topP, typical, xtc } from "./truncation.ts";

const NO_IDS = new Int32Array(0);

export interface Sampler {
  /**
   * The next id.
   * @param logits (vocabSize); changed in place
   * @param mask one bit per id, bit `id & 31` of word `id >> 5`; 0: the id may not follow
   * Throws `runner` if the logits are unusable: NaN, +∞, or all masked.
   */
  sample(logits: Float32Array, mask?: Int32Array): number;
  /** The candidates with which `choose` returns the same id as `sample`; undefined: it needs all logits. */
  wish(limits: OfferLimits): OfferWish | undefined;
  /** The next id, from the requested candidates. Throws as `sample` does. */
  choose(offer: Offer): number;
  /** Records a token of the prompt or the answer for the penalties. */
  accept(id: number): void;
  /** A look-ahead sampler, for a draft model's logits, that will choose like this one; this one stays unchanged. */
  ahead(): Ahead;
}

/** A sampler's upcoming choices. */
export interface Ahead {
  /** Resets it to the sampler's state. */
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
}

/** The mutable state of a sampler. */
interface State {
  readonly addBias: ((logits: Float32Array) => void) | undefined;
  readonly penalties: Penalties | undefined;
  readonly rng: Rng;
  readonly mirostat: Mirostat | undefined;
}

/** Throws `bad_request` if a bias is for a token that the model does not have. */
export function makeSampler(options: SamplingOptions, parts: SamplerParts): Sampler {
  checkVocabulary(parts.vocabSize);
  return makeChain(makeState(options, parts), { options, parts });
}

const makeState = (options: SamplingOptions, parts: SamplerParts): State => ({
  addBias: makeLogitBias(options.logit_bias, parts.vocabSize),
  penalties: makePenalties(options, parts),
  rng: makeRng(options.seed === -1 ? randomSeed() : options.seed),
  mirostat: makeMirostat(options),
});

function makeChain(
  state: State,
  { options, parts }: { readonly options: SamplingOptions; readonly parts: SamplerParts },
): Sampler {
  const { addBias, penalties, rng, mirostat } = state;
  const candidates = makeCandidates();
  const scratch = makeScratch();
  const suppressed = (parts.suppressed ?? NO_IDS).filter((id) => id < parts.vocabSize);

  const drawCut = (): number => {
    cut(candidates, options);
    if (dropsTop(options) && candidates.length > 1 && rng.float() <= options.xtc_probability) {
      xtc(candidates, options.xtc_threshold);
    }
    const { temperature, dynatemp_range: range, dynatemp_exponent: exponent } = options;
    heat(candidates, dynamicTemperature(candidates, { temperature, range, exponent }));
    return candidates.ids[draw(candidates, rng.float())]!;
  };
  const sample = (logits: Float32Array, mask?: Int32Array): number => {
    addBias?.(logits);
    for (const id of suppressed) logits[id] = -Infinity;
    penalties?.apply(logits);
    if (mask) applyMask(logits, mask);
    if (options.temperature <= 0) return argmax(logits);
    if (mirostat) {
      coolLogits(logits, options.temperature);
      return drawMirostat(mirostat, { candidates, logits, scratch, rng });
    }
    topNSigma(logits, options.top_n_sigma);
    select(candidates, logits, { options, scratch });
    return drawCut();
  };
  const top = topOf(options);
  const k = Math.min(top, parts.vocabSize);
  const wish = (limits: OfferLimits): OfferWish | undefined => {
    if (addBias || options.top_n_sigma > 0 || top === Infinity || k > limits.k) return undefined;
    const apart = joined(penalties?.held() ?? NO_IDS, suppressed);
    return apart.length > limits.apart ? undefined : { k, apart };
  };
  const choose = (offer: Offer): number => {
    penalties?.applyTo(offer);
    suppressIn(offer, suppressed);
    selectOffered(candidates, offer, { k, scratch });
    return options.temperature <= 0 ? candidates.ids[0]! : drawCut();
  };
  const accept = (id: number): void => penalties?.accept(id);
  return { sample, wish, choose, accept, ahead: () => makeAhead(state, { options, parts }) };
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

/** Both lists, without duplicates. */
function joined(held: Int32Array, suppressed: Int32Array): Int32Array {
  return suppressed.length === 0 ? held : Int32Array.from(new Set([...held, ...suppressed]));
}

function suppressIn({ ids, logits }: Offer, suppressed: Int32Array): void {
  if (suppressed.length === 0) return;
  for (let i = 0; i < ids.length; i++) if (suppressed.includes(ids[i]!)) logits[i] = -Infinity;
}

/** Number of likeliest tokens that matter; Infinity: all. */
function topOf({ temperature, mirostat, top_k }: SamplingOptions): number {
  if (temperature <= 0) return 1;
  return mirostat === 0 && top_k > 0 ? top_k : Infinity;
}

/** Selects the input of the truncation chain. Without top-k, only tokens that later stages can keep are sorted. */
function select(c: Candidates, logits: Float32Array, parts: { options: SamplingOptions; scratch: Scratch }): void {
  const { options, scratch } = parts;
  const { top_k, tfs_z, typical_p, top_p, min_p } = options;
  if (top_k > 0) selectTop(c, logits, { k: top_k, scratch });
  else if (tfs_z < 1 || typical_p < 1 || dropsTop(options)) selectAbove(c, logits, { cutoff: -Infinity, scratch });
  else if (top_p < 1) selectNucleus(c, logits, { topP: top_p, scratch });
  else if (min_p > 0) selectAbove(c, logits, { cutoff: minCutoff(logits, min_p), scratch });
  else selectAll(c, logits);
}

/** Returns whether XTC may drop the likeliest tokens. */
const dropsTop = ({ xtc_probability: probability, xtc_threshold: threshold }: SamplingOptions): boolean =>
  probability > 0 && threshold <= 0.5;

/** Runs the truncation chain; skipped if nothing had to be sorted. */
function cut(c: Candidates, { tfs_z, typical_p, top_p, min_p }: SamplingOptions): void {
  tailFree(c, tfs_z);
  typical(c, typical_p);
  topP(c, top_p);
  minP(c, min_p);
}

/** The smallest logit that min-p keeps, minus a margin for rounding; `minP` decides. */
function minCutoff(logits: Float32Array, p: number): number {
  const max = logits[argmax(logits)]!;
  return max + Math.min(0, Math.log(p)) - 1e-6 * Math.max(1, Math.abs(max));
}

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
