/** A small model that takes images, made in code from seeded random numbers: a text model and its projector. */
import { deflateSync } from "node:zlib";
import { makeRng, type Rng } from "../../../src/engine/text/rng.ts";
import type { WriteModel, WriteTensor, WriteValue } from "../../../src/engine/formats/files/write.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import { makeModel } from "../architectures/models.ts";
import { gaussian } from "../../conformance/weights.ts";
import { bpeMetadata, TYPE } from "../text/tokenizer/fixtures.ts";

export const TEXT_DIM = 64;
/** Tokens of each image, whatever its size: a grid of 4 × 4 patches, pooled by two. */
export const IMAGE_ROWS = 4;

const TEMPLATE =
  "{{ bos_token }}{% for message in messages %}<start_of_turn>{{ message.role }}\n{{ message.content | trim }}" +
  "<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}";

const u32 = (value: number): WriteValue => ({ u32: value });
const f32 = (value: number): WriteValue => ({ f32: value });

function randomTensor(rng: Rng, name: string, shape: readonly number[], { mean = 0, size = 0.2 } = {}): WriteTensor {
  const count = shape.reduce((product, each) => product * each, 1);
  const values = Float32Array.from({ length: count }, () => mean + size * gaussian(rng));
  return { name, shape, quant: quants.f32, data: new Uint8Array(values.buffer) };
}

/** Gemma 3 with a vocabulary of bytes and the control tokens of its templates. */
export function makeVisionText(): WriteModel {
  const { metadata, tensors } = makeModel("gemma3");
  const marks = ["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>"];
  const pieces = bpeMetadata(
    [],
    marks.map((mark) => [mark, TYPE.control] as const),
  );
  const vocabulary = [...pieces].filter(([key]) => key.startsWith("tokenizer."));
  const count = (pieces.get("tokenizer.ggml.tokens") as string[]).length;
  const embedding = randomTensor(makeRng(5), "token_embd.weight", [TEXT_DIM, count], { size: 0.1 });
  return {
    metadata: {
      ...Object.fromEntries(Object.entries(metadata).filter(([key]) => !key.startsWith("tokenizer."))),
      ...(Object.fromEntries(vocabulary) as Record<string, WriteValue>),
      "gemma3.context_length": u32(4096),
      "tokenizer.ggml.add_bos_token": true,
      "tokenizer.ggml.bos_token_id": u32(count - marks.length),
      "tokenizer.ggml.eos_token_id": u32(count - marks.length + 1),
      "tokenizer.chat_template": TEMPLATE,
    },
    tensors: tensors.map((tensor) => (tensor.name === "token_embd.weight" ? embedding : tensor)),
  };
}

/** @param more keys that replace the default ones */
export function makeProjector(more: Readonly<Record<string, WriteValue>> = {}): WriteModel {
  const [dim, ffnDim, layers, patch, side] = [32, 48, 2, 8, 32];
  const rng = makeRng(9);
  const tensors: WriteTensor[] = [];
  const add = (name: string, shape: readonly number[], options = {}): void =>
    void tensors.push(randomTensor(rng, name, shape, options));
  const norm = (name: string): void => {
    add(`${name}.weight`, [dim], { mean: 1 });
    add(`${name}.bias`, [dim]);
  };
  const linear = (name: string, from: number, to: number): void => {
    add(`${name}.weight`, [from, to]);
    add(`${name}.bias`, [to]);
  };
  add("v.patch_embd.weight", [patch, patch, 3, dim]);
  add("v.patch_embd.bias", [dim]);
  add("v.position_embd.weight", [dim, (side / patch) ** 2]);
  for (let layer = 0; layer < layers; layer++) {
    const blk = `v.blk.${layer}`;
    for (const name of ["ln1", "ln2"]) norm(`${blk}.${name}`);
    for (const name of ["q", "k", "v", "out"]) linear(`${blk}.attn_${name}`, dim, dim);
    linear(`${blk}.ffn_up`, dim, ffnDim);
    linear(`${blk}.ffn_down`, ffnDim, dim);
  }
  norm("v.post_ln");
  add("mm.soft_emb_norm.weight", [dim], { mean: 1 });
  add("mm.input_projection.weight", [TEXT_DIM, dim]);
  return {
    metadata: {
      "general.architecture": "clip",
      "clip.has_vision_encoder": true,
      "clip.projector_type": "gemma3",
      "clip.use_gelu": true,
      "clip.vision.image_size": u32(side),
      "clip.vision.patch_size": u32(patch),
      "clip.vision.embedding_length": u32(dim),
      "clip.vision.feed_forward_length": u32(ffnDim),
      "clip.vision.block_count": u32(layers),
      "clip.vision.projection_dim": u32(TEXT_DIM),
      "clip.vision.attention.head_count": u32(2),
      "clip.vision.attention.layer_norm_epsilon": f32(1e-6),
      "clip.vision.projector.scale_factor": u32(2),
      "clip.vision.image_mean": Float32Array.of(0.5, 0.5, 0.5),
      "clip.vision.image_std": Float32Array.of(0.5, 0.5, 0.5),
      ...more,
    },
    tensors,
  };
}

/** A PNG of 8-bit samples: gray 0, RGB 2, gray with alpha 4, RGB with alpha 6. */
export function png(
  width: number,
  height: number,
  { colour = 2, samples }: { colour?: number; samples: Uint8Array },
): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, colour, 0, 0, 0], 8);
  const perRow = samples.length / height;
  const rows = Array.from({ length: height }, (_, y) => [0, ...samples.subarray(y * perRow, (y + 1) * perRow)]);
  const data = deflateSync(Uint8Array.from(rows.flat()));
  const signature = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
  return Buffer.concat([signature, chunk("IHDR", header), chunk("IDAT", data), chunk("IEND", new Uint8Array(0))]);
}

export function chunk(kind: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(kind, "latin1"), data]);
  const all = Buffer.alloc(body.length + 8);
  all.writeUInt32BE(data.length, 0);
  body.copy(all, 4);
  all.writeUInt32BE(Bun.hash.crc32(body), body.length + 4);
  return all;
}

/** A picture of random colours in four stripes; another seed gives another picture. */
export function picture(seed: number, width = 20, height = 32): Buffer {
  const rng = makeRng(seed);
  const stripes = Array.from({ length: 4 }, () => Array.from({ length: 3 }, () => (rng.float() < 0.5 ? 0 : 255)));
  const colourAt = (row: number): readonly number[] => stripes[Math.floor((4 * row) / height)]!;
  const samples = Array.from({ length: height }, (_, row) => Array.from({ length: width }, () => colourAt(row)).flat());
  return png(width, height, { samples: Uint8Array.from(samples.flat()) });
}

/** Names of the older layout, in which both parts are one file: see `engine/formats/gguf/repair/vision.ts`. */
const ONE_FILE: readonly (readonly [RegExp, string])[] = [
  [/^v\.patch_embd/, "v.patch_embedding"],
  [/^v\.position_embd/, "v.position_embedding"],
  [/^v\.post_ln/, "v.post_layernorm"],
  [/\.ln([12])/, ".layer_norm$1"],
  [/\.attn_out/, ".attn_output"],
  [/\.ffn_up/, ".mlp.fc1"],
  [/\.ffn_down/, ".mlp.fc2"],
  [/^mm\./, "mm.mm_"],
];

/** The same model as one file. */
export function makeOneFile(): WriteModel {
  const [text, projector] = [makeVisionText(), makeProjector()];
  const vision = Object.entries(projector.metadata)
    .filter(([key]) => key.startsWith("clip.vision."))
    .map(([key, value]) => [key.replace("clip.", "gemma3."), value] as const);
  const named = (name: string): string => ONE_FILE.reduce((to, [from, other]) => to.replace(from, other), name);
  const tensors = projector.tensors.map((tensor) => ({ ...tensor, name: named(tensor.name) }));
  return { metadata: { ...text.metadata, ...Object.fromEntries(vision) }, tensors: [...text.tensors, ...tensors] };
}
