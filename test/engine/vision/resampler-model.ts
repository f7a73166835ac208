/** A small MiniCPM-V encoder, made in code from seeded random numbers, and pictures for it. */
import { makeRng } from "../../../src/engine/text/rng.ts";
import type { WriteModel, WriteTensor } from "../../../src/engine/formats/files/write.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import type { RgbImage } from "../../../src/engine/vision/image.ts";
import { gaussian } from "../../conformance/weights.ts";

const DIM = 32;
const FFN_DIM = 48;
const LAYERS = 2;
const PATCH = 4;
const SIDE = 24;
const QUERIES = 6;
/** Two heads of 128. */
export const RESAMPLED_DIM = 256;
const PLACES = 70 * 70;

/** Pictures, the slices across and down that llama.cpp cuts each into. */
export const RESAMPLED = {
  small: { width: 20, height: 17, grid: [0, 0] },
  wide: { width: 61, height: 23, grid: [3, 1] },
  tall: { width: 30, height: 47, grid: [1, 2] },
} as const;

export function pictureOf({ width, height }: { width: number; height: number }): RgbImage {
  const rng = makeRng(width * 1000 + height);
  const [across, down] = [1 + 3 * rng.float(), 1 + 3 * rng.float()];
  const data = Uint8Array.from({ length: width * height * 3 }, (_, i) => {
    const [x, y] = [Math.floor(i / 3) % width, Math.floor(i / 3 / width)];
    const wave = Math.sin((across * x) / width + i) + Math.cos((down * y) / height - i);
    return Math.round(127 + 50 * wave + 20 * rng.float());
  });
  return { width, height, data };
}

/** @param version of the family: 2 has image marks around slices */
export function makeResampler(version: number): WriteModel {
  const rng = makeRng(21);
  const tensors: WriteTensor[] = [];
  const add = (name: string, shape: readonly number[], { mean = 0, size = 0.2 } = {}): void => {
    const count = shape.reduce((product, each) => product * each, 1);
    const values = Float32Array.from({ length: count }, () => mean + size * gaussian(rng));
    tensors.push({ name, shape, quant: quants.f32, data: new Uint8Array(values.buffer) });
  };
  const norm = (name: string, dim: number): void => {
    add(`${name}.weight`, [dim], { mean: 1 });
    add(`${name}.bias`, [dim]);
  };
  const linear = (name: string, from: number, to: number): void => {
    add(`${name}.weight`, [from, to], { size: 1 / Math.sqrt(from) });
    add(`${name}.bias`, [to]);
  };
  add("v.patch_embd.weight", [PATCH, PATCH, 3, DIM]);
  add("v.patch_embd.bias", [DIM]);
  add("v.position_embd.weight", [DIM, PLACES]);
  for (let layer = 0; layer < LAYERS; layer++) {
    const blk = `v.blk.${layer}`;
    for (const name of ["ln1", "ln2"]) norm(`${blk}.${name}`, DIM);
    for (const name of ["q", "k", "v", "out"]) linear(`${blk}.attn_${name}`, DIM, DIM);
    linear(`${blk}.ffn_down`, DIM, FFN_DIM); // the name in older files
    linear(`${blk}.ffn_up`, FFN_DIM, DIM);
  }
  norm("v.post_ln", DIM);
  add("resampler.query", [RESAMPLED_DIM, QUERIES], { size: 1 });
  add("resampler.pos_embed_k", [RESAMPLED_DIM, 1]); // never read
  add("resampler.kv.weight", [DIM, RESAMPLED_DIM]);
  for (const name of ["q", "k", "v", "out"]) linear(`resampler.attn.${name}`, RESAMPLED_DIM, RESAMPLED_DIM);
  for (const name of ["q", "kv", "post"]) norm(`resampler.ln_${name}`, RESAMPLED_DIM);
  add("resampler.proj.weight", [RESAMPLED_DIM, RESAMPLED_DIM], { size: 1 / 16 });
  return { metadata: metadataOf(version), tensors };
}

function metadataOf(version: number): WriteModel["metadata"] {
  return {
    "general.architecture": "clip",
    "clip.has_vision_encoder": true,
    "clip.projector_type": "resampler",
    "clip.minicpmv_version": { i32: version },
    "clip.minicpmv_query_num": { u32: QUERIES },
    "clip.use_gelu": true,
    "clip.vision.image_size": { u32: SIDE },
    "clip.vision.patch_size": { u32: PATCH },
    "clip.vision.embedding_length": { u32: DIM },
    "clip.vision.feed_forward_length": { u32: FFN_DIM },
    "clip.vision.block_count": { u32: LAYERS },
    "clip.vision.projection_dim": { u32: 0 },
    "clip.vision.attention.head_count": { u32: 2 },
    "clip.vision.attention.layer_norm_epsilon": { f32: 1e-6 },
    "clip.vision.image_mean": Float32Array.of(0.5, 0.5, 0.5),
    "clip.vision.image_std": Float32Array.of(0.5, 0.5, 0.5),
  };
}
