/**
 * The scoring head of a reranker: from the pooled state to one number. Keys and tensors are llama.cpp's
 * (`LLAMA_POOLING_TYPE_RANK`, build_pooling in llama-graph.cpp): `cls` with tanh, or for ModernBERT with GELU and a
 * norm, then `cls.output`; with several outputs, the score is the probability of the first.
 */
import { AppError } from "../../base/index.ts";
import { activations } from "../backends/cpu/math.ts";
import { getNumber } from "../formats/gguf/keys.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import { RANK } from "./pooling.ts";
import { secondTextOf, type SecondText } from "./second-text.ts";

/** The default prompt for rerankers that derive from chat models (Qwen3-Reranker's model card). */
export const RANK_PROMPT =
  "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. " +
  'Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n' +
  "<Instruct>: Given a web search query, retrieve relevant passages that answer the query\n" +
  "<Query>: {query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

export interface RankHead {
  /** `logit`: any number, higher for a better match; `share`: a probability from 0 to 1. */
  readonly kind: "logit" | "share";
  /** The vectors of a document's tokens; undefined: documents use the same embeddings as queries. */
  readonly secondText: SecondText | undefined;
  /** The score of an unnormalized pooled state, (dim). */
  score(state: Float64Array): number;
}

interface Layer {
  /** (outDim, dim) */
  readonly weight: Float32Array;
  readonly bias: Float32Array | undefined;
  readonly outDim: number;
}

/**
 * Undefined if the model is not a reranker. Throws `bad_file` if its head is missing or has a wrong shape.
 * @param types true if tokens have types, which distinguish the texts of a pair
 */
export function rankHeadOf(
  gguf: Gguf,
  { arch, dim, types }: { arch: string; dim: number; types: boolean },
): RankHead | undefined {
  if (gguf.metadata.get(`${arch}.pooling_type`) !== RANK) return undefined;
  const dense = readLayer(gguf, "cls", { dim, outDim: dim });
  const output = readLayer(gguf, "cls.output", { dim, outDim: undefined });
  const norm = valuesOf(gguf, "cls.norm.weight", dim);
  const eps = getNumber(gguf.metadata, `${arch}.attention.layer_norm_epsilon`, 1e-5);
  const act = arch === "modern-bert" ? activations.gelu_erf : Math.tanh;
  if (!dense && !output) {
    throw new AppError(
      "bad_file",
      `${gguf.path}: tensor 'cls.output.weight': expected the head of a reranker, got none`,
    );
  }
  const isShare = output !== undefined && output.outDim > 1;
  return {
    kind: isShare ? "share" : "logit",
    secondText: types ? secondTextOf(gguf, dim) : undefined,
    score(state) {
      const acted = dense ? apply(dense, state).map((x) => act(x)) : state;
      const hidden = norm ? layerNorm(acted, norm, eps) : acted;
      const scores = output ? apply(output, hidden) : hidden;
      return isShare ? firstShare(scores) : scores[0]!; // a head has at least one output
    },
  };
}

/** W (outDim, dim) · x (dim) + b → (outDim), in float64. */
function apply({ weight, bias, outDim }: Layer, x: Float64Array): Float64Array {
  return Float64Array.from({ length: outDim }, (_, row) => {
    let sum = bias?.[row] ?? 0;
    for (let i = 0; i < x.length; i++) sum += weight[row * x.length + i]! * x[i]!;
    return sum;
  });
}

/** (x − mean) / √(variance + eps) · w */
function layerNorm(x: Float64Array, w: Float32Array, eps: number): Float64Array {
  const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
  const variance = x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length;
  return x.map((value, i) => ((value - mean) / Math.sqrt(variance + eps)) * w[i]!); // valuesOf has checked the length
}

/** The first value of a softmax. */
function firstShare(scores: Float64Array): number {
  const most = Math.max(...scores);
  const sum = scores.reduce((total, score) => total + Math.exp(score - most), 0);
  return Math.exp(scores[0]! - most) / sum;
}

/** Limit of a classifier's labels: more than any reranker has. */
const OUTPUTS_MAX = 1024;

function readLayer(
  gguf: Gguf,
  name: string,
  { dim, outDim: wanted }: { dim: number; outDim: number | undefined },
): Layer | undefined {
  const info = gguf.tensors.get(`${name}.weight`);
  if (!info) return undefined;
  const [inDim = 0, outDim = 1] = info.shape;
  const isRight = inDim === dim && (wanted === undefined ? outDim <= OUTPUTS_MAX : outDim === wanted);
  if (!isRight || info.shape.length > 2) {
    const expected = `(${dim}, ${wanted ?? `1 to ${OUTPUTS_MAX}`})`;
    const got = `(${info.shape.join(", ")})`;
    throw new AppError("bad_file", `${gguf.path}: tensor '${name}.weight': expected ${expected}, got ${got}`);
  }
  return {
    weight: valuesOf(gguf, `${name}.weight`, dim * outDim)!,
    bias: valuesOf(gguf, `${name}.bias`, outDim),
    outDim,
  };
}

function valuesOf(gguf: Gguf, name: string, length: number): Float32Array | undefined {
  const info = gguf.tensors.get(name);
  if (!info) return undefined;
  const found = info.shape.reduce((product, size) => product * size, 1);
  if (found !== length) {
    throw new AppError("bad_file", `${gguf.path}: tensor '${name}': expected ${length} values, got ${found}`);
  }
  if (info.quant.unreadable)
    throw new AppError("unsupported", `${gguf.path}: tensor '${name}': ${info.quant.unreadable}`);
  const out = new Float32Array(length);
  info.quant.dequantize(gguf.read(name), out);
  return out;
}
