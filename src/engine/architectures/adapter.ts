/**
 * Program → program: applies adapters to a model. Every weight that an adapter changes gets the change as a low-rank
 * part, several adapters side by side; steps and files stay unchanged.
 */
import type { Program, WeightSource } from "../program/backend.ts";
import { withWeights, type WeightRole } from "../program/describe.ts";
import type { LowRank, Step, Weight } from "../program/step.ts";
import { readRange } from "../program/weight-range.ts";
import { unpackRows } from "../program/unpack.ts";
import { AppError } from "../../base/index.ts";
import { readAdapter, type AdapterPair } from "../formats/gguf/adapter.ts";
import type { Gguf, TensorInfo } from "../formats/gguf/gguf.ts";
import { f32 } from "../formats/quant/f32.ts";

const EMBEDDING = "token_embd.weight";
/** Weight roles that a LoRA may change: matrices and embeddings. */
const CHANGED: ReadonlySet<WeightRole> = new Set(["matrix", "experts", "router", "embedding"]);

/** An adapter's change of a whole tensor, without factors of the weight. */
interface Change extends LowRank {
  readonly factor: number;
  readonly path: string;
  /** Name of a tensor, for messages. */
  readonly label: string;
}

/**
 * Throws `bad_file` if an adapter does not fit the model, and `unsupported` if it changes a weight other than a matrix
 * or an embedding.
 */
export function applyAdapters(program: Program, base: Gguf, adapters: readonly Gguf[]): Program {
  if (adapters.length === 0) return program;
  const sources = makeSources(program.weights, adapters);
  const changes = new Map<string, Change[]>();
  for (const [index, adapter] of adapters.entries()) {
    for (const pair of readAdapter(adapter, base)) {
      const change = changeOf(pair, { index, adapter, sources });
      changes.set(pair.target, [...(changes.get(pair.target) ?? []), change]);
    }
  }
  const used = new Set<string>();
  const change: ChangeWeight = (weight, target = weight.name) => {
    const found = changes.get(target);
    if (!found) return weight;
    used.add(target);
    return { ...weight, lowRank: found.map((each) => partOf(each, weight)) };
  };
  const steps = program.steps.map((step) => changeStep(step, change));
  for (const [target, [first]] of changes) {
    if (used.has(target) || !first) continue;
    const why = `'${program.shape.arch}' multiplies nothing by that weight`;
    throw new AppError("unsupported", `${first.path}: tensor '${first.label}': ${why}`);
  }
  return { ...program, steps, weights: sources.weights };
}

/** @param target the changed tensor, if it is not the weight's own */
type ChangeWeight = (weight: Weight, target?: string) => Weight;

function changeStep(step: Step, change: ChangeWeight): Step {
  // an output that is tied to the embedding has its own changes
  const tied = step.op === "linear" && step.w.name === EMBEDDING ? "output.weight" : undefined;
  return withWeights(step, (weight, role) => (CHANGED.has(role) ? change(weight, tied) : weight));
}

/** The change of a weight that is all or a part of the tensor. */
function partOf({ a, b, factor }: Change, weight: Weight): LowRank {
  const scale = new Float32Array(weight.experts).fill(factor);
  return { a, b: { ...b, rowStart: weight.rowStart, outDim: weight.outDim, scale } };
}

interface Sources {
  /** Weights of the model and of the adapters, and weights made here. */
  readonly weights: WeightSource;
  /** Name of an adapter's tensor in `weights`. */
  nameOf(index: number, tensor: string): string;
  /** Adds a tensor. */
  put(name: string, bytes: Uint8Array): void;
}

function makeSources(base: WeightSource, adapters: readonly Gguf[]): Sources {
  const made = new Map<string, () => Uint8Array>();
  const nameOf = (index: number, tensor: string): string => `adapter ${index + 1}: ${tensor}`;
  for (const [index, adapter] of adapters.entries()) {
    for (const tensor of adapter.tensors.keys()) made.set(nameOf(index, tensor), () => adapter.read(tensor));
  }
  const read = (name: string): Uint8Array => (made.get(name) ?? (() => base.read(name)))();
  return {
    weights: {
      path: base.path,
      adapters: adapters.map(({ path }) => path),
      read,
      readRange: (name, start, length) =>
        made.has(name) ? read(name).subarray(start, start + length) : readRange(base, name, start, length),
    },
    nameOf,
    put: (name, bytes) => void made.set(name, () => bytes),
  };
}

interface Place {
  readonly index: number;
  readonly adapter: Gguf;
  readonly sources: Sources;
}

function changeOf({ target, a, b, factor }: AdapterPair, { index, adapter, sources }: Place): Change {
  const about = { factor, path: adapter.path, label: a.name };
  const weight = (tensor: TensorInfo): Weight => weightOf(tensor, sources.nameOf(index, tensor.name));
  if (target !== EMBEDDING) return { ...about, a: weight(a), b: weight(b) };
  // For an embedding, A has a row per token, and B is transposed.
  return { ...about, a: transposed(weight(b), sources), b: weight(a) };
}

function weightOf({ shape, quant }: TensorInfo, name: string): Weight {
  const [inDim = 1, outDim = 1, experts = 1] = shape;
  return { name, quant, inDim, outDim, rowStart: 0, tensorRows: outDim, experts };
}

/** The transposed matrix, as float32 in memory. */
function transposed(weight: Weight, sources: Sources): Weight {
  const { inDim, outDim } = weight;
  const rows = unpackRows(sources.weights, weight, { expert: 0, first: 0, out: new Float32Array(inDim * outDim) });
  const values = new Float32Array(rows.length);
  for (let r = 0; r < outDim; r++) for (let i = 0; i < inDim; i++) values[i * outDim + r] = rows[r * inDim + i]!;
  const name = `${weight.name}, transposed`;
  sources.put(name, new Uint8Array(values.buffer));
  return { ...weight, name, quant: f32, inDim: outDim, outDim: inDim, tensorRows: inDim };
}
