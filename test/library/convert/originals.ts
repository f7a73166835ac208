/** Models of the original implementations, recorded by bench/real/originals.ts, and their weights. */
import { join } from "node:path";
import { f32 } from "../../../src/engine/formats/quant/f32.ts";
import { pack, type PlainTensor } from "./hugging-face.ts";

export const ORIGINALS = join(import.meta.dir, "originals.json.gz");
/** Rows of logits that are recorded, the last ones. */
export const ROWS = 2;

export interface Original {
  readonly config: Readonly<Record<string, unknown>>;
  readonly ids: readonly number[];
  readonly tensors: Readonly<Record<string, readonly [shape: readonly number[], middle: number, width: number]>>;
  /** Logits of the last rows, (`ROWS`, vocabulary) float32, in base64; final states of encoders. */
  readonly last: string;
}

export async function readOriginals(): Promise<Readonly<Record<string, Original>>> {
  return JSON.parse(new TextDecoder().decode(Bun.gunzipSync(await Bun.file(ORIGINALS).bytes())));
}

/** The tensors of a model's file; `weights` of bench/real/originals.py makes the same. */
export function tensorsOf({ tensors }: Original): Record<string, PlainTensor> {
  const all = Object.entries(tensors).map(([name, [shape, middle, width]]) => {
    const seed = Bun.hash.crc32(name);
    const count = shape.reduce((product, size) => product * size, 1);
    const values = Float32Array.from({ length: count }, (_, i) => {
      const value = middle + width * (hashed(seed + i) / 2 ** 31 - 1);
      return Math.f16round(value);
    });
    return [name, { dtype: "F32", shape, data: pack(values, f32) }] as const;
  });
  return Object.fromEntries(all);
}

/** The last step of MurmurHash 3. */
function hashed(seed: number): number {
  let x = seed >>> 0;
  x ^= x >>> 16;
  x = Math.imul(x, 0x85ebca6b);
  x ^= x >>> 13;
  x = Math.imul(x, 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
}
