/**
 * Converts a LoRA adapter to a GGUF of type `adapter`. Sources are PEFT (`adapter_config.json` and
 * `adapter_model.safetensors`) and MLX (`adapters.safetensors`, with transposed matrices). Each weight NAME gets
 * `NAME.lora_a` (in, rank) and `NAME.lora_b` (rank, out) in GGUF's order, as float32; for the embedding, A is (rank,
 * vocabulary). The rows of B are permuted as the conversion permutes the rows of the base model's weight.
 * (convert_lora_to_gguf.py of llama.cpp; mlx_lm/tuner/lora.py)
 */
import { AppError, isObject } from "../../base/index.ts";
import { f32 as f32Quant, writeNewGguf, type WriteTensor } from "../../engine/formats/index.ts";
import { f32, type Architecture } from "./architecture.ts";
import { convertible } from "./archs/index.ts";
import { configOf, type Config } from "./config.ts";
import { getJson, rootedAt, type ModelFolder } from "./folder.ts";
import { bareName, findRules } from "./plan.ts";
import { readSafetensors, type SafeTensor } from "./safetensors.ts";
import { checkHeads, shapeOf, sourceType, tensorData, type TensorSource } from "./tensor-data.ts";

/** Four times the largest in use. */
const RANK_MAX = 4096;

/** Facts on the base model, which an adapter's files do not contain. */
export interface AdapterBase {
  /** `general.architecture` of the base model. */
  readonly arch: string;
  readonly nLayers: number;
  readonly nHeads: number;
  readonly nKvHeads: number;
}

export interface AdapterOptions {
  readonly folder: ModelFolder;
  readonly base: AdapterBase;
  /** Output path; must not exist. A failed conversion may leave a partial file. */
  readonly to: string;
}

/**
 * Writes a GGUF at `to`.
 * Throws `bad_file` for invalid files, and `unsupported` for kinds of adapters that a GGUF cannot express and for
 * weights that the base's architecture does not have.
 */
export async function convertAdapter({ folder: given, base, to }: AdapterOptions): Promise<void> {
  const folder = rootedAt("adapter_config.json", given);
  const { label } = folder;
  const config = configOf(await getJson(folder, "adapter_config.json"), `${label}: 'adapter_config.json'`);
  checkKind(config);
  const file = ["adapter_model.safetensors", "adapters.safetensors"].find((name) => folder.files.has(name));
  if (file === undefined) {
    throw new AppError("bad_file", `${label}: expected a file 'adapter_model.safetensors', got none`);
  }
  const tensors = await readSafetensors(folder.files.get(file)!, `${label}: '${file}'`); // found above
  const pairs = pairUp(tensors, { base, label });
  await writeNewGguf(to, {
    metadata: {
      "general.architecture": base.arch,
      "general.type": "adapter",
      "adapter.type": "lora",
      "adapter.lora.alpha": f32(alphaOf(config)),
    },
    tensors: [...pairs].flatMap(([name, pair]) => writePair(name, pair, label)),
  });
}

/** Switches of PEFT and MLX that change an adapter's meaning, with the supported values. */
const PLAIN: Readonly<Record<string, readonly unknown[]>> = {
  peft_type: ["LORA", undefined],
  use_dora: [false, undefined],
  fan_in_fan_out: [false, undefined],
  bias: ["none", undefined],
  lora_bias: [false, undefined],
  fine_tune_type: ["lora", undefined],
};

function checkKind(config: Config): void {
  for (const [key, known] of Object.entries(PLAIN)) {
    if (known.includes(config.find(key))) continue;
    throw new AppError(
      "unsupported",
      config.wrong(key, `${String(known[0])}, which is all that a GGUF can say`).message,
    );
  }
  const alphas = config.find("alpha_pattern");
  if (alphas === undefined || (isObject(alphas) && Object.keys(alphas).length === 0)) return;
  throw new AppError("unsupported", config.wrong("alpha_pattern", "one alpha for all weights").message);
}

/** The alpha that engines divide by the rank; rank-stabilized adapters divide by its square root instead. */
function alphaOf(config: Config): number {
  const mlx = config.findPart("lora_parameters");
  if (mlx) return mlx.number("scale") * (mlx.findNumber("alpha") ?? mlx.count("rank")); // alpha: files of 2024
  const alpha = config.number("lora_alpha");
  if (!config.flag("use_rslora", false)) return alpha;
  const ranks = config.find("rank_pattern");
  if (ranks !== undefined && !(isObject(ranks) && Object.keys(ranks).length === 0)) {
    throw new AppError(
      "unsupported",
      config.wrong("rank_pattern", "one rank for all weights, with use_rslora").message,
    );
  }
  return alpha * Math.sqrt(config.count("r"));
}

interface Pair {
  a?: TensorSource;
  b?: TensorSource;
}

/** Pairs the halves of each change, by the name of the weight in the GGUF. */
function pairUp(
  tensors: readonly SafeTensor[],
  { base, label }: { base: AdapterBase; label: string },
): Map<string, Required<Pair>> {
  const table = tableOf(base, label);
  const pairs = new Map<string, Pair>();
  for (const tensor of tensors) {
    if (tensor.name.endsWith(".base_layer.weight")) continue; // a copy of the base model's weight
    const half = halfOf(tensor.name);
    const [found, ...others] = half ? findRules(table, `${bareName(half.module)}.weight`, base.nLayers) : [];
    const isOne = others.length === 0 && !found?.rule.rows && !found?.rule.isTransposed && found?.expert === undefined;
    if (!half || !found || !isOne) {
      const why = `no LoRA of a weight that '${base.arch}' has in ${base.nLayers} layers`;
      throw new AppError("unsupported", `${label}: tensor '${tensor.name}': ${why}`);
    }
    const { part, isMlx } = half;
    const pairedHeads = part === "b" ? (found.rule.pairedHeads ?? 0) : 0;
    const isEmbeddingA = part === "a" && found.name === "token_embd.weight";
    const source = { tensor, pairedHeads, isTransposed: isMlx !== isEmbeddingA };
    sourceType(tensor, label);
    const pair = pairs.get(found.name) ?? {};
    pairs.set(found.name, { ...pair, [part]: source });
  }
  if (pairs.size === 0) throw new AppError("bad_file", `${label}: expected tensors of an adapter, got none`);
  return new Map([...pairs].map(([name, pair]) => [name, checkPair(name, pair, label)]));
}

/** The module and the half (A or B) of a tensor; undefined: not a LoRA tensor. */
function halfOf(name: string): { module: string; part: "a" | "b"; isMlx: boolean } | undefined {
  const found =
    /^(?:base_model\.model\.)?(.+)\.lora_(?:([AB])(?:\.\w+)?\.weight|embedding_([AB])(?:\.\w+)?|([ab]))$/.exec(name);
  const [, module, inPeft, ofEmbedding, inMlx] = found ?? [];
  const part = (inPeft ?? ofEmbedding ?? inMlx)?.toLowerCase();
  if (module === undefined || (part !== "a" && part !== "b")) return undefined;
  return { module, part, isMlx: inMlx !== undefined };
}

function tableOf({ arch, nHeads, nKvHeads }: AdapterBase, label: string) {
  // RWKV's matrices may be halved in a GGUF, which the changes of an adapter do not follow
  const bases = Object.values<Architecture>(convertible).filter(({ vocabulary }) => vocabulary !== "world");
  const found = bases.find((one) => one.arch === arch);
  if (!found) {
    const known = [...new Set(bases.map((one) => one.arch))].join(", ");
    throw new AppError("unsupported", `${label}: expected an adapter for a base of ${known}, got one of '${arch}'`);
  }
  const heads = { num_attention_heads: nHeads, num_key_value_heads: nKvHeads, hidden_size: nHeads };
  try {
    return found.tensors(configOf(heads, label));
  } catch (cause) {
    const why = "its tensors depend on more of the model's configuration than its GGUF has";
    throw new AppError("unsupported", `${label}: adapters for a base of '${arch}' cannot be converted: ${why}`, {
      cause,
    });
  }
}

function checkPair(name: string, { a, b }: Pair, label: string): Required<Pair> {
  const wrong = (expected: string, got: string): AppError =>
    new AppError("bad_file", `${label}: adapter of '${name}': expected ${expected}, got ${got}`);
  if (!a || !b) throw wrong("a matrix A and a matrix B", a ? "only A" : "only B");
  const [shapeA, shapeB] = [shapeOf(a), shapeOf(b)];
  const [rank, inDim, ...more] = name === "token_embd.weight" ? shapeA.toReversed() : shapeA;
  const [outDim, rankB, ...moreB] = shapeB;
  const isPair = rank && inDim && outDim && rank === rankB && rank <= RANK_MAX && more.length + moreB.length === 0;
  if (!isPair) {
    const found = `(${shapeA.join(", ")}) and (${shapeB.join(", ")})`;
    throw wrong(`(rank, in) and (out, rank), a rank of at most ${RANK_MAX}`, found);
  }
  checkHeads(a, label);
  checkHeads(b, label);
  return { a, b };
}

function writePair(name: string, { a, b }: Required<Pair>, label: string): WriteTensor[] {
  return Object.entries({ lora_a: a, lora_b: b }).map(([part, source]) => ({
    name: `${name}.${part}`,
    shape: shapeOf(source).toReversed(),
    quant: f32Quant,
    data: { [Symbol.asyncIterator]: () => tensorData(source, f32Quant, label) },
  }));
}
