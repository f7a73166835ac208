/** The changes that adapters make to a model's tensors, and a source of weights for model and adapters. */
import type { WeightSource } from "../program/backend.ts";
import type { LowRank, Step, Weight } from "../program/step.ts";
import { readRange } from "../program/weight-range.ts";
import { unpackRows } from "../program/unpack.ts";
import { readAdapter, type AdapterPair } from "../formats/gguf/adapter.ts";
import type { Gguf, TensorInfo } from "../formats/gguf/gguf.ts";
import { f32 } from "../formats/quant/f32.ts";

const EMBEDDING = "token_embd.weight";

/** An adapter's change of a whole tensor, without the weight's factors. */
export interface Change extends LowRank {
  /** Index of the adapter. */
  readonly index: number;
  readonly factor: number;
  readonly path: string;
  /** Name of a tensor, for messages. */
  readonly label: string;
}

/** The tensor whose change applies to a weight. An output that is tied to the embedding has changes of its own. */
export const targetOf = ({ op }: Step, { name }: Weight): string =>
  op === "linear" && name === EMBEDDING ? "output.weight" : name;

/** The changes of all adapters by tensor. Throws `bad_file` if an adapter does not fit the model. */
export function readChanges(base: Gguf, adapters: readonly Gguf[], sources: Sources): Map<string, Change[]> {
  const changes = new Map<string, Change[]>();
  for (const [index, adapter] of adapters.entries()) {
    for (const pair of readAdapter(adapter, base)) {
      const change = changeOf(pair, { index, adapter, sources });
      changes.set(pair.target, [...(changes.get(pair.target) ?? []), change]);
    }
  }
  return changes;
}

export interface Sources {
  /** Weights of the model and of the adapters, and computed weights. */
  readonly weights: WeightSource;
  /** Name of an adapter's tensor in `weights`. */
  nameOf(index: number, tensor: string): string;
  /** Adds a tensor, which is computed when it is first read. */
  put(name: string, make: () => Uint8Array): void;
}

export function makeSources(base: WeightSource, adapters: readonly Gguf[]): Sources {
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
      place: (name) => (made.has(name) ? undefined : base.place?.(name)),
    },
    nameOf,
    put(name, make) {
      let bytes: Uint8Array | undefined;
      made.set(name, () => (bytes ??= make()));
    },
  };
}

interface Place {
  readonly index: number;
  readonly adapter: Gguf;
  readonly sources: Sources;
}

function changeOf({ target, a, b, factor }: AdapterPair, { index, adapter, sources }: Place): Change {
  const about = { index, factor, path: adapter.path, label: a.name };
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
  const name = `${weight.name}, transposed`;
  sources.put(name, () => transpose(weight, sources));
  return { ...weight, name, quant: f32, inDim: outDim, outDim: inDim, tensorRows: inDim };
}

function transpose(weight: Weight, sources: Sources): Uint8Array {
  const { inDim, outDim } = weight;
  const rows = unpackRows(sources.weights, weight, { expert: 0, first: 0, out: new Float32Array(inDim * outDim) });
  const values = new Float32Array(rows.length);
  for (let r = 0; r < outDim; r++) for (let i = 0; i < inDim; i++) values[i * outDim + r] = rows[r * inDim + i]!;
  return new Uint8Array(values.buffer);
}
