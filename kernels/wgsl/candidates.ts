/**
 * Top-k selection on the device, and the format of its requests and results. The best of every 1,024 logits are kept,
 * then the best of every 1,024 of those, until one list is left: two dispatches for one token of a vocabulary of
 * 200,000, three for 64.
 *
 * - A request takes REQUEST_WORDS words: the index of the wanted row, the number of masked ids, those ids.
 * - A result takes ANSWER_WORDS words: the logits of those ids, as bits, ending at word `TOP_K_LIMITS.masked`; from
 * there on the best tokens, two words each: the bits of the logit in ascending order, and the id.
 */
import type { TopKLimits, TopKRequest } from "../../src/engine/text/sampling/top-k.ts";
import type { Params } from "./dispatch.ts";
import type { KernelName } from "./sources.ts";

export const TOP_K_LIMITS: TopKLimits = { k: 128, masked: 256 };
/** Numbers of candidates that searches keep, powers of two: a row uses the smallest one that is enough. */
export const KEEPS = [1, 64, TOP_K_LIMITS.k] as const;
export const REQUEST_WORDS = 2 + TOP_K_LIMITS.masked;
export const ANSWER_WORDS = TOP_K_LIMITS.masked + 2 * TOP_K_LIMITS.k;
/** Tokens per workgroup. (`LEN` of keep_best) */
const GROUP_TOKENS = 1024;
const MASK_WG = 64;
const TOKEN_WORDS = 2;
/** Sort key of NaN and infinity. */
export const UNUSABLE = 0xffffffff;

export interface SearchStage {
  readonly kernel: KernelName;
  readonly params: Params;
  /** Workgroups per row. */
  readonly groups: number;
  /** Words of its output per row; the last stage writes results. */
  readonly listWords: number;
}

/** Masks tokens and saves their logits. */
export const maskStage = (vocabSize: number): Omit<SearchStage, "listWords"> => ({
  kernel: "mask_tokens",
  params: { vocab: vocabSize, requestWords: REQUEST_WORDS, answerWords: ANSWER_WORDS, maskedMax: TOP_K_LIMITS.masked },
  groups: TOP_K_LIMITS.masked / MASK_WG,
});

/** The dispatches that find the best `keep` tokens. */
export function searchStages(vocabSize: number, keep: number): SearchStage[] {
  const stages: SearchStage[] = [];
  for (let count = vocabSize; ;) {
    const groups = Math.ceil(count / GROUP_TOKENS);
    const left = groups * keep;
    const place =
      groups === 1
        ? { keep, yStride: ANSWER_WORDS / TOKEN_WORDS, yFirst: TOP_K_LIMITS.masked / TOKEN_WORDS }
        : { keep, yStride: left, yFirst: 0 };
    const first = stages.length === 0;
    stages.push({
      kernel: first ? "top_of_logits" : "top_of_lists",
      params: first ? { vocab: vocabSize, requestWords: REQUEST_WORDS, ...place } : { count, ...place },
      groups,
      listWords: TOKEN_WORDS * left,
    });
    if (groups === 1) return stages;
    count = left;
  }
}

/** Writes the `index`-th request. @param row index of the wanted row */
export function writeRequest(
  words: Uint32Array,
  index: number,
  { row, request }: { row: number; request: TopKRequest },
): void {
  const at = index * REQUEST_WORDS;
  words[at] = row;
  words[at + 1] = request.masked.length;
  words.set(request.masked, at + 2);
}

/** The words of the `index`-th result. */
export const answerWords = (index: number, { k, masked }: TopKRequest): { first: number; count: number } => ({
  first: index * ANSWER_WORDS + TOP_K_LIMITS.masked - masked.length,
  count: masked.length + TOKEN_WORDS * k,
});
