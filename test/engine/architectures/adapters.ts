/** Random adapters for the models made in code, and the same models with the changes merged into their weights. */
import { makeRng } from "../../../src/engine/text/rng.ts";
import type { Gguf } from "../../../src/engine/formats/gguf/gguf.ts";
import type { WriteModel, WriteTensor } from "../../../src/engine/formats/files/write.ts";
import { quants, type QuantName } from "../../../src/engine/formats/quant/index.ts";
import { gaussians } from "../../conformance/weights.ts";

const EMBEDDING = "token_embd.weight";
const OUTPUT = "output.weight";

export interface AdapterOptions {
  readonly rank: number;
  readonly alpha: number;
  readonly seed: number;
  /** Matrices to change; all by default. */
  readonly targets?: RegExp;
}

/**
 * Adapters by model, with llama.cpp's logits in `logits/NAME+adapter.f32`. llama.cpp cannot change an embedding that is
 * also the output.
 */
export const recordedAdapters: Readonly<Record<string, AdapterOptions>> = {
  llama: { rank: 4, alpha: 8, seed: 11 },
  "llama-tied-factors": { rank: 3, alpha: 0, seed: 12, targets: /blk/ },
  "llama-experts": { rank: 4, alpha: 2, seed: 13, targets: /_exps|attn/ },
  qwen3: { rank: 8, alpha: 16, seed: 14 },
  qwen3moe: { rank: 2, alpha: 4, seed: 15, targets: /blk/ },
  gemma3: { rank: 4, alpha: 8, seed: 16, targets: /blk/ },
  phi3: { rank: 16, alpha: 8, seed: 17 },
};

/** The properties of its base that an adapter needs. */
export interface Shapes {
  readonly metadata: WriteModel["metadata"];
  readonly tensors: readonly { readonly name: string; readonly shape: readonly number[] }[];
}

/** The base in a file. */
export function shapesOf({ metadata, tensors }: Pick<Gguf, "metadata" | "tensors">): Shapes {
  const arch = String(metadata.get("general.architecture"));
  return { metadata: { "general.architecture": arch }, tensors: [...tensors.values()] };
}

/** Every matrix of a model that an adapter can change. A tied output has a change of its own. */
function targetsOf({ tensors }: Shapes): Shapes["tensors"] {
  const matrices = tensors.filter(({ shape }) => shape.length > 1);
  const embedding = tensors.find(({ name }) => name === EMBEDDING)!;
  if (tensors.some(({ name }) => name === OUTPUT)) return matrices;
  return [...matrices, { name: OUTPUT, shape: embedding.shape }];
}

/** An adapter as in a file, with a visible effect. */
export function makeAdapter(model: Shapes, { rank, alpha, seed, targets = /./ }: AdapterOptions): WriteModel {
  const rng = makeRng(seed);
  const tensor = (name: string, shape: readonly number[], size: number): WriteTensor => {
    const count = shape.reduce((a, b) => a * b, 1);
    const values = gaussians(count, rng, (normal) => size * normal);
    return { name, shape, quant: quants.f32, data: new Uint8Array(values.buffer) };
  };
  const size = 0.7 / Math.sqrt(rank) / factorOf({ rank, alpha });
  const tensors = targetsOf(model)
    .filter(({ name }) => targets.test(name))
    .flatMap(({ name, shape: [inDim = 1, outDim = 1, ...stack] }) => {
      const isEmbedding = name === EMBEDDING;
      return [
        tensor(`${name}.lora_a`, isEmbedding ? [rank, outDim] : [inDim, rank, ...stack], 1 / Math.sqrt(inDim)),
        tensor(`${name}.lora_b`, isEmbedding ? [rank, inDim] : [rank, outDim, ...stack], size),
      ];
    });
  return {
    metadata: {
      "general.architecture": String(model.metadata["general.architecture"]),
      "general.type": "adapter",
      "adapter.type": "lora",
      "adapter.lora.alpha": { f32: alpha },
    },
    tensors,
  };
}

/** Without an alpha, the change is not scaled. */
const factorOf = ({ rank, alpha }: { rank: number; alpha: number }): number => (alpha === 0 ? 1 : alpha / rank);

const floatsOf = (tensor: WriteTensor): Float32Array => {
  const bytes = (tensor.data as Uint8Array).slice(); // made above, or by makeModel
  return new Float32Array(bytes.buffer);
};

/** The model with an adapter's changes in its weights: W + alpha / rank · B · A. */
export function merge(model: WriteModel, adapter: WriteModel, { rank, alpha }: AdapterOptions): WriteModel {
  const parts = new Map(adapter.tensors.map((tensor) => [tensor.name, tensor]));
  const embedding = model.tensors.find(({ name }) => name === EMBEDDING)!;
  const isTied = !model.tensors.some(({ name }) => name === OUTPUT);
  const tensors = isTied ? [...model.tensors, { ...embedding, name: OUTPUT }] : model.tensors;
  return {
    ...model,
    tensors: tensors.map((tensor) => {
      const a = parts.get(`${tensor.name}.lora_a`);
      const b = parts.get(`${tensor.name}.lora_b`);
      if (!a || !b) return tensor;
      const [inDim = 1, outDim = 1, count = 1] = tensor.shape;
      const [w, left, right] = [floatsOf(tensor), floatsOf(b), floatsOf(a)];
      const at = (expert: number, row: number, column: number): number => {
        let sum = 0;
        for (let k = 0; k < rank; k++) {
          sum +=
            tensor.name === EMBEDDING
              ? right[row * rank + k]! * left[column * rank + k]!
              : left[(expert * outDim + row) * rank + k]! * right[(expert * rank + k) * inDim + column]!;
        }
        return sum * factorOf({ rank, alpha });
      };
      for (let i = 0; i < w.length; i++) {
        const row = Math.floor(i / inDim);
        w[i]! += at(Math.floor(row / outDim), row % outDim, i % inDim);
      }
      if (w.length !== inDim * outDim * count) throw new Error(`${tensor.name}: a shape that is no stack`);
      return { ...tensor, data: new Uint8Array(w.buffer) };
    }),
  };
}

/** Converts a matrix whose rows are whole blocks to another type. */
export function quantizedTo(name: QuantName, tensor: WriteTensor): WriteTensor {
  const quant = quants[name];
  const { shape } = tensor;
  if (shape.length < 2 || shape[0]! % quant.blockLen !== 0) return tensor;
  const values = floatsOf(tensor);
  const data = new Uint8Array((values.length / quant.blockLen) * quant.blockBytes);
  quant.quantize!(values, data);
  return { ...tensor, quant, data };
}

/** Converts a tensor back to float32. */
export function asFloat(tensor: WriteTensor): WriteTensor {
  const values = new Float32Array(tensor.shape.reduce((a, b) => a * b, 1));
  tensor.quant.dequantize(tensor.data as Uint8Array, values); // made above, or by makeModel
  return { ...tensor, quant: quants.f32, data: new Uint8Array(values.buffer) };
}
