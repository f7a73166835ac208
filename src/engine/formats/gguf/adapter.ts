/**
 * LoRA adapters as GGUF files: `general.type` is `adapter`, `adapter.type` is `lora`, and each changed weight NAME has
 * `NAME.lora_a` (in, rank) and `NAME.lora_b` (rank, out), in GGUF's order, experts last. For `token_embd.weight` they
 * are (rank, vocabulary) and (rank, dim). This module reads headers only, no weights. (convert_lora_to_gguf.py,
 * llama-adapter.cpp of llama.cpp)
 */
import { AppError } from "../../../base/index.ts";
import type { ModelHeader, TensorInfo } from "./gguf.ts";
import { inFile } from "./in-file.ts";
import { getNumber, getString } from "./keys.ts";

/** Four times the largest rank in use. */
const RANK_MAX = 4096;
const EMBEDDING = "token_embd.weight";
const OUTPUT = "output.weight";

/** The two halves of the change to one weight. */
export interface AdapterPair {
  /** Tensor of the base; `output.weight` even if the base has a tied embedding in its place. */
  readonly target: string;
  readonly a: TensorInfo;
  readonly b: TensorInfo;
  readonly rank: number;
  /** Factor on b · a. */
  readonly factor: number;
}

type Header = Pick<ModelHeader, "path" | "metadata" | "tensors">;

/**
 * The pairs of an adapter. Throws `bad_file` if the file is not an adapter, does not match this base or is incomplete,
 * and `unsupported` for other kinds of adapters.
 */
export const readAdapter = (adapter: Header, base: Header): AdapterPair[] =>
  inFile(adapter.path, () => pairsOf(adapter, base));

function pairsOf(adapter: Header, base: Header): AdapterPair[] {
  const { path, metadata, tensors } = adapter;
  const type = getString(metadata, "general.type", "model");
  if (type !== "adapter") throw wrong(path, "'general.type'", "'adapter'", `'${type}'`);
  const kind = getString(metadata, "adapter.type", "");
  if (kind !== "lora") throw unsupported(path, "'adapter.type'", "'lora'", `'${kind}'`);
  if (metadata.has("adapter.alora.invocation_tokens")) {
    throw unsupported(path, "'adapter.alora.invocation_tokens'", "an adapter that always works", "some tokens");
  }
  const arch = getString(base.metadata, "general.architecture", "");
  const own = getString(metadata, "general.architecture", "");
  if (own !== arch) throw wrong(path, "'general.architecture'", `'${arch}', that of the model`, `'${own}'`);
  const alpha = getNumber(metadata, "adapter.lora.alpha", 0);
  if (!Number.isFinite(alpha)) throw wrong(path, "'adapter.lora.alpha'", "a number", String(alpha));
  const targets = new Set([...tensors.keys()].map((name) => targetOf(path, name)));
  if (targets.size === 0) throw wrong(path, "adapter", "tensors", "none");
  return [...targets].map((target) => {
    const pair = pairOf(adapter, base, target);
    return { target, ...pair, factor: alpha === 0 ? 1 : alpha / pair.rank };
  });
}

/** Rows and columns of the change, in the order of its base: see the header of this file. */
function pairOf({ path, tensors }: Header, base: Header, target: string): Pick<AdapterPair, "a" | "b" | "rank"> {
  const a = tensors.get(`${target}.lora_a`);
  const b = tensors.get(`${target}.lora_b`);
  if (!a || !b) {
    const there = a ? "lora_a" : "lora_b";
    throw wrong(path, `adapter of '${target}'`, "lora_a and lora_b", `only ${there}`);
  }
  const weight = base.tensors.get(target) ?? (target === OUTPUT ? base.tensors.get(EMBEDDING) : undefined);
  if (!weight) throw wrong(path, `tensor '${a.name}'`, "one for a weight of the model", `one for '${target}'`);
  const [inDim = 0, outDim = 0, ...stack] = weight.shape;
  if (weight.shape.length < 2) throw wrong(path, `tensor '${a.name}'`, "one for a matrix", `one for a vector`);
  const rank = b.shape[0] ?? 0;
  if (rank < 1 || rank > RANK_MAX) {
    throw wrong(path, `tensor '${b.name}'`, `a rank of 1 to ${RANK_MAX}`, String(rank));
  }
  const isEmbedding = target === EMBEDDING;
  checkShape(path, a, isEmbedding ? [rank, outDim] : [inDim, rank, ...stack]);
  checkShape(path, b, isEmbedding ? [rank, inDim] : [rank, outDim, ...stack]);
  return { a, b, rank };
}

function targetOf(path: string, name: string): string {
  const target = /^(.+)\.lora_[ab]$/s.exec(name)?.[1];
  if (target !== undefined) return target;
  throw unsupported(path, `tensor '${name}'`, "a name that ends in .lora_a or .lora_b", "another");
}

function checkShape(path: string, { name, shape, quant }: TensorInfo, expected: readonly number[]): void {
  const length = Math.max(shape.length, expected.length);
  const isSame = Array.from({ length }).every((_, i) => (shape[i] ?? 1) === (expected[i] ?? 1));
  if (!isSame) throw wrong(path, `tensor '${name}'`, `(${expected.join(", ")})`, `(${shape.join(", ")})`);
  if (expected[0]! % quant.blockLen === 0) return;
  throw wrong(path, `tensor '${name}'`, `rows of whole ${quant.name} blocks`, `rows of ${expected[0]}`);
}

const sentence = (path: string, what: string, expected: string, got: string): string =>
  `${path}: ${what}: expected ${expected}, got ${got}`;

const wrong = (...parts: Parameters<typeof sentence>): AppError => new AppError("bad_file", sentence(...parts));

const unsupported = (...parts: Parameters<typeof sentence>): AppError =>
  new AppError("unsupported", sentence(...parts));
