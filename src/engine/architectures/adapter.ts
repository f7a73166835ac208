/**
 * Program → program: lays adapters over a model. Every weight that an adapter changes gets its change as a low-rank
 * part, several adapters one beside the other; the steps stay as they are, and so do the files.
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
/** What an adapter changes: everything that something is multiplied by, and embeddings. */
const CHANGED: ReadonlySet<WeightRole> = new Set(["matrix", "experts", "router", "embedding"]);

/** An adapter's change of a whole tensor, before its factors. */
interface Change extends LowRank {
  readonly factor: number;
  readonly path: string;
  /** Name of a tensor, for messages. */
  readonly label: string;
}

/**
 * Throws `bad_file` where an adapter does not fit the model, `unsupported` where it changes a weight that the model
 * does not multiply anything by.
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

/** @param target the tensor whose changes count, where it is not the weight's own */
type ChangeWeight = (weight: Weight, target?: string) => Weight;

function changeStep(step: Step, change: ChangeWeight): Step {
  // an output that is tied to the embedding has changes of its own
  const tied = step.op === "linear" && step.w.name === EMBEDDING ? "output.weight" : undefined;
  return withWeights(step, (weight, role) => (CHANGED.has(role) ? change(weight, tied) : weight));
}

/** The change of a weight that may be a part of the tensor, or the whole of it. */
function partOf({ a, b, factor }: Change, weight: Weight): LowRank {
  const scale = new Float32Array(weight.experts).fill(factor);
  return { a, b: { ...b, rowStart: weight.rowStart, outDim: weight.outDim, scale } };
}

interface Sources {
  /** Weights of the model, of the adapters, and those made here. */
  readonly weights: WeightSource;
  /** The name in `weights` of an adapter's tensor. */
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
  // Rows of the first half are the tokens' here, and the other one stands on its side.
  return { ...about, a: transposed(weight(b), sources), b: weight(a) };
}

function weightOf({ shape, quant }: TensorInfo, name: string): Weight {
  const [inDim = 1, outDim = 1, experts = 1] = shape;
  return { name, quant, inDim, outDim, rowStart: 0, tensorRows: outDim, experts };
}

/** The matrix with rows and columns exchanged, as float32 in memory. */
function transposed(weight: Weight, sources: Sources): Weight {
  const { inDim, outDim } = weight;
  const rows = unpackRows(sources.weights, weight, { expert: 0, first: 0, out: new Float32Array(inDim * outDim) });
  const values = new Float32Array(rows.length);
  for (let r = 0; r < outDim; r++) for (let i = 0; i < inDim; i++) values[i * outDim + r] = rows[r * inDim + i]!;
  const name = `${weight.name}, transposed`;
  sources.put(name, new Uint8Array(values.buffer));
  return { ...weight, name, quant: f32, inDim: outDim, outDim: inDim, tensorRows: inDim };
}
