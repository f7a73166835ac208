/** Pictures that an original's encoder saw (bench/real/originals.py), and the encoder that sees them here. */
import type { Gguf } from "../../../src/engine/formats/gguf/gguf.ts";
import { projectorGguf } from "../../../src/engine/formats/gguf/repair/index.ts";
import type { Backend, Program } from "../../../src/engine/program/backend.ts";
import { openImageEncoder, type RgbImage } from "../../../src/engine/vision/index.ts";
import { nmse } from "../../engine/backends/compare.ts";
import { valuesOf } from "./values.ts";

/** Every n-th row is recorded. */
const STEP = 7;
const MEAN = [0.48145466, 0.4578275, 0.40821073];
const STD = [0.26862954, 0.26130258, 0.27577711];

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Width and height of the canvas that it is put on. */
  readonly canvas: readonly [width: number, height: number];
  /** CRC-32 of the canvas: planes of bytes. */
  readonly pixels: number;
  /** Every seventh row, float32 in base64. */
  readonly rows: string;
}

/** A picture after Hearth's encoder, with the NMSE of its recorded rows. */
interface Seen {
  readonly canvas: readonly [number, number];
  readonly pixels: number;
  readonly error: number;
  /** (rows, dim) */
  readonly memory: Float32Array;
}

export async function seenBy(
  backend: Backend,
  { gguf, program, pictures }: { gguf: Gguf; program: Program; pictures: readonly Picture[] },
): Promise<Seen[]> {
  if (pictures.length === 0) return [];
  const encoder = await openImageEncoder(projectorGguf(gguf)!, { backend, text: program, threads: 1 });
  const seen: Seen[] = [];
  try {
    for (const picture of pictures) {
      const image = imageOf(picture);
      const [canvas] = encoder.pixels(image);
      const [part] = await encoder.encode(image);
      if (part?.kind !== "rows" || !part.memory || !canvas) throw new Error("expected rows for cross attention");
      const expected = new Float32Array(Uint8Array.from(Buffer.from(picture.rows, "base64")).buffer);
      const { memory } = part;
      const { dim } = encoder;
      const rows = memory.filter((_, i) => Math.floor(i / dim) % STEP === 0);
      const error = rows.length === expected.length ? nmse(rows, expected) : Infinity;
      seen.push({ canvas: [canvas.width, canvas.height], pixels: Bun.hash.crc32(bytesOf(canvas)), error, memory });
    }
  } finally {
    encoder.close();
  }
  return seen;
}

function imageOf({ width, height }: Picture): RgbImage {
  const values = valuesOf("picture", width * height * 3, { middle: 0, width: 1 });
  const data = Uint8Array.from(values, (value) => Math.min(255, Math.floor((value + 1) * 128)));
  return { width, height, data };
}

function bytesOf({ values }: { values: Float32Array }): Uint8Array {
  const plane = values.length / 3;
  return Uint8Array.from(values, (value, i) => {
    const channel = Math.floor(i / plane);
    return Math.round((value * STD[channel]! + MEAN[channel]!) * 255);
  });
}
