/**
 * Samplers on fixed logits after a fixed history. `llama-distributions.json` has the distributions that llama.cpp's
 * samplers leave, recorded by bench/samplers.ts.
 */
import { join } from "node:path";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { makeCandidates, makeScratch, type Candidates } from "../../../../src/engine/text/sampling/candidates.ts";
import { makeStages } from "../../../../src/engine/text/sampling/chain.ts";
import { makeBreakers, type Breakers } from "../../../../src/engine/text/sampling/dry-breakers.ts";
import { makeDry } from "../../../../src/engine/text/sampling/dry.ts";
import { drawMirostat } from "../../../../src/engine/text/sampling/mirostat.ts";
import { SAMPLING_DEFAULTS, type SamplingOptions } from "../../../../src/engine/text/sampling/options.ts";
import { makePenalties } from "../../../../src/engine/text/sampling/penalties.ts";
import { makeRng } from "../../../../src/engine/text/rng.ts";
import { loadTokenizer } from "../../../../src/engine/text/tokenizer/load.ts";

export const MODEL = join(import.meta.dir, "../../../../models/hearth/hearth.gguf");

export interface Case {
  readonly name: string;
  readonly options: Partial<SamplingOptions>;
}

const OFF = { ...SAMPLING_DEFAULTS, temperature: 1, top_k: 0, top_p: 1 };
/** The options of a case: all other samplers are off. */
export const optionsOf = ({ options }: Case): SamplingOptions => ({ ...OFF, ...options });

const DRY = { dry_multiplier: 0.8, dry_penalty_last_n: 64 };

export const CASES: readonly Case[] = [
  { name: "off", options: {} },
  { name: "defaults", options: { top_k: 40, top_p: 0.95, min_p: 0.05, temperature: 0.8 } },
  { name: "penalties", options: { repeat_penalty: 1.3, presence_penalty: 0.4, frequency_penalty: 0.3 } },
  { name: "dry", options: DRY },
  { name: "dry-strong", options: { ...DRY, dry_multiplier: 2, dry_base: 2.5, dry_allowed_length: 1 } },
  { name: "dry-short", options: { ...DRY, dry_penalty_last_n: 9, dry_allowed_length: 1 } },
  { name: "dry-any", options: { ...DRY, dry_allowed_length: 0 } },
  { name: "dry-no-breakers", options: { ...DRY, dry_sequence_breakers: [] } },
  { name: "dry-own-breakers", options: { ...DRY, dry_sequence_breakers: [" the", "ing", "e", "model runs"] } },
  { name: "dry-cut", options: { ...DRY, top_k: 20, min_p: 0.1 } },
  { name: "sigma", options: { top_n_sigma: 1 } },
  { name: "sigma-dynamic", options: { top_n_sigma: 1.5, dynatemp_range: 0.5, dynatemp_exponent: 1.5 } },
  { name: "typical", options: { typical_p: 0.6 } },
  { name: "typical-greedy", options: { typical_p: 0.3, temperature: 0 } },
  { name: "keep-top-p", options: { top_p: 0.1, min_keep: 7 } },
  { name: "keep-min-p", options: { min_p: 0.9, min_keep: 5 } },
  { name: "keep-typical", options: { typical_p: 0.05, min_keep: 9 } },
  { name: "keep-after-top-k", options: { top_k: 3, top_p: 0.1, min_keep: 7 } },
  { name: "xtc", options: { xtc_probability: 1, xtc_threshold: 0.04, top_k: 20 } },
  { name: "xtc-greedy", options: { xtc_probability: 1, xtc_threshold: 0.04, top_k: 20, temperature: 0 } },
  { name: "xtc-keep", options: { xtc_probability: 1, xtc_threshold: 0.1, top_k: 8, min_keep: 8 } },
  { name: "dynamic", options: { top_k: 30, dynatemp_range: 0.7, dynatemp_exponent: 0.8, temperature: 1.1 } },
  { name: "dynamic-zero", options: { top_k: 10, dynatemp_range: 0.7, temperature: 0 } },
  {
    name: "hot-first",
    options: { samplers: ["temperature", "top_p", "min_p"], temperature: 1.8, top_p: 0.7, min_p: 0.05 },
  },
  { name: "no-temperature", options: { samplers: ["top_k", "typ_p"], temperature: 0.2, top_k: 12, typical_p: 0.7 } },
  {
    name: "late-penalties",
    options: { samplers: ["top_k", "penalties", "dry", "top_p"], ...DRY, top_k: 30, repeat_penalty: 1.5, top_p: 0.8 },
  },
  {
    name: "late-sigma",
    options: { samplers: ["top_k", "top_n_sigma", "temperature"], top_k: 50, top_n_sigma: 1, temperature: 1.3 },
  },
  { name: "cold-first", options: { samplers: ["temperature", "top_k"], temperature: 0, top_k: 5 } },
  {
    name: "xtc-first",
    options: { samplers: ["xtc", "top_k", "temperature"], xtc_probability: 1, xtc_threshold: 0.004, top_k: 9 },
  },
  { name: "twice", options: { samplers: ["temperature", "temperature", "min_p"], temperature: 1.5, min_p: 0.1 } },
  { name: "mirostat", options: { mirostat: 1, mirostat_tau: 6, mirostat_eta: 0 } },
  { name: "mirostat-wide", options: { mirostat: 1, mirostat_tau: 5, mirostat_eta: 0, temperature: 0.6 } },
  { name: "mirostat-2", options: { mirostat: 2, mirostat_tau: 4, mirostat_eta: 0 } },
  { name: "mirostat-2-narrow", options: { mirostat: 2, mirostat_tau: 0.1, mirostat_eta: 0 } },
  { name: "mirostat-2-hot", options: { mirostat: 2, mirostat_tau: 5, mirostat_eta: 0, temperature: 1.4 } },
  {
    name: "mirostat-alone",
    options: { mirostat: 2, mirostat_tau: 3, mirostat_eta: 0, repeat_penalty: 1.5, top_k: 3, min_p: 0.3, ...DRY },
  },
  { name: "none", options: { samplers: [], temperature: 0.1, top_k: 1 } },
];

const HISTORY =
  'The model runs on your machine: the model runs on the machine. "A: b" A: b\nThe model runs on your machine: the model runs on';

export interface Setting {
  readonly logits: Float32Array;
  readonly history: Int32Array;
  readonly breakersOf: (options: SamplingOptions) => Breakers;
}

/** Logits of the embedded model's vocabulary: tokens of the history are likely, some others as well. */
export function makeSetting(): Setting {
  const gguf = openGguf(MODEL);
  try {
    const tokenizer = loadTokenizer(gguf.metadata, MODEL);
    const history = tokenizer.encode(HISTORY, { addSpecial: false, parseSpecial: false });
    const rng = makeRng(33);
    const logits = Float32Array.from({ length: tokenizer.vocabSize }, () => 6 * rng.float() - 6);
    for (const [i, id] of history.entries()) logits[id] = 1 + 0.05 * i;
    for (let i = 0; i < 40; i++) logits[Math.floor(rng.float() * logits.length)] = 3 * rng.float();
    const breakers = makeBreakers(tokenizer);
    return { logits, history, breakersOf: (options) => breakers(options.dry_sequence_breakers) };
  } finally {
    gguf.close();
  }
}

/** The probabilities that our samplers leave, by token; XTC drops tokens wherever it may. */
export function distributionOf(each: Case, { logits, history, breakersOf }: Setting): ReadonlyMap<number, number> {
  const options = optionsOf(each);
  if (options.mirostat > 0) return mirostatOf(options, logits);
  const parts = { vocabSize: logits.length, ctxLen: 512, breakers: breakersOf(options) };
  const [penalties, dry] = [makePenalties(options, parts), makeDry(options, parts)];
  for (const id of history) {
    penalties?.accept(id);
    dry?.accept(id);
  }
  const chain = makeStages({ options, penalties, dry, scratch: makeScratch(), random: () => 0 });
  const candidates = makeCandidates();
  chain.run({ logits: logits.slice(), candidates, isSelected: false, count: logits.length });
  return sharesOf(candidates);
}

/** The distribution of the first draw. */
function mirostatOf({ mirostat, temperature, mirostat_tau: tau }: SamplingOptions, logits: Float32Array) {
  const candidates = makeCandidates();
  const state = { version: mirostat === 1 ? 1 : 2, tau, eta: 0, mu: 2 * tau } as const;
  const cooled = logits.map((logit) => logit / temperature);
  drawMirostat(state, { candidates, logits: cooled, scratch: makeScratch(), rng: makeRng(1) });
  return sharesOf(candidates);
}

function sharesOf(candidates: Candidates): ReadonlyMap<number, number> {
  const weights = candidates.weights.subarray(0, candidates.length);
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return new Map(Array.from(weights, (weight, i) => [candidates.ids[i]!, weight / sum]));
}
