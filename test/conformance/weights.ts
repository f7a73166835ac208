/**
 * Random weights for tests, in memory: blocks of every type with scales that give values of a chosen size, and a source
 * that serves them to a backend like a file.
 */
import type { WeightSource } from "../../src/engine/program/backend.ts";
import type { Weight } from "../../src/engine/program/step.ts";
import { floatToHalf } from "../../src/engine/formats/half.ts";
import type { Rng } from "../../src/engine/text/rng.ts";
import { quants, type QuantName } from "../../src/engine/formats/quant/index.ts";

/** Offsets of a block's float16 scales, and the standard deviation of the values for scales of 1; ggml-common.h. */
const HALF_SCALES: Readonly<Partial<Record<QuantName, { at: readonly number[]; size: number }>>> = {
  q4_0: { at: [0], size: 4.6 },
  q4_1: { at: [0, 2], size: 4.6 },
  q5_0: { at: [0], size: 9.2 },
  q5_1: { at: [0, 2], size: 9.2 },
  q8_0: { at: [0], size: 74 },
  q2_K: { at: [80, 82], size: 12 },
  q3_K: { at: [108], size: 43 },
  q4_K: { at: [0, 2], size: 190 },
  q5_K: { at: [0, 2], size: 390 },
  q6_K: { at: [208], size: 1370 },
  iq4_nl: { at: [0], size: 70 },
  iq4_xs: { at: [0], size: 1300 },
  iq2_xxs: { at: [0], size: 53 },
  iq2_xs: { at: [0], size: 56 },
  iq2_s: { at: [0], size: 56 },
  iq3_xxs: { at: [0], size: 142 },
  iq3_s: { at: [0], size: 140 },
  iq1_s: { at: [0], size: 7.2 },
  tq1_0: { at: [52], size: 0.82 },
  tq2_0: { at: [64], size: 1.2 },
  q1_0: { at: [0], size: 1 },
  q2_0: { at: [0], size: 1.2 },
};

/** A number of the standard normal distribution (Box and Muller, 1958). */
export function gaussian(rng: Rng): number {
  return Math.sqrt(-2 * Math.log(1 - rng.float())) * Math.cos(2 * Math.PI * rng.float());
}

/** `count` numbers, each mapped by `value`. */
export function gaussians(count: number, rng: Rng, value: (normal: number) => number): Float32Array<ArrayBuffer> {
  const values = new Float32Array(count);
  for (let i = 0; i < count; i++) values[i] = value(gaussian(rng));
  return values;
}

const single = new Float32Array(1);
const singleBits = new Uint32Array(single.buffer);

/** The bits of the nearest float32. */
function bitsOf(value: number): number {
  single[0] = value;
  return singleBits[0]!;
}

interface BlockOptions {
  readonly size: number;
  readonly rng: Rng;
  /** Bytes that replace a block's random ones, in turn. */
  readonly bytes?: readonly number[] | undefined;
}

/** Packed blocks of `count` random weights of about the wanted size. */
export function randomBlocks(name: QuantName, count: number, options: BlockOptions): Uint8Array {
  const { size, rng, bytes: given } = options;
  const quant = quants[name];
  const bytes = new Uint8Array((count / quant.blockLen) * quant.blockBytes);
  const view = new DataView(bytes.buffer);
  if (name === "f32" || name === "f16" || name === "bf16") {
    for (let i = 0; i < count; i++) {
      const value = size * gaussian(rng);
      if (name === "f32") view.setFloat32(4 * i, value, true);
      else if (name === "f16") view.setUint16(2 * i, floatToHalf(value), true);
      else view.setUint16(2 * i, bitsOf(value) >>> 16, true);
    }
    return bytes;
  }
  for (let i = 0; i < bytes.length; i++)
    bytes[i] = given ? given[Math.floor(i / quant.blockBytes) % given.length]! : rng.uint32();
  for (let block = 0; block < bytes.length; block += quant.blockBytes) {
    const scales = HALF_SCALES[name];
    for (const at of scales?.at ?? []) {
      const value = (size / scales!.size) * (0.5 + rng.float()) * (rng.float() < 0.5 ? -1 : 1);
      view.setUint16(block + at, floatToHalf(value), true);
    }
    // IQ1_M spreads its float16 scale over the top four bits of four words; values deviate by 7.2.
    if (name === "iq1_m") {
      const half = floatToHalf((size / 7.2) * (0.5 + rng.float()));
      for (let i = 0; i < 4; i++) {
        const at = block + 48 + 2 * i;
        view.setUint16(at, (view.getUint16(at, true) & 0x0fff) | (((half >> (4 * i)) & 15) << 12), true);
      }
    }
    // MXFP4 has a power of two for a scale, biased by 128 because its values are doubled; values deviate by 5.
    if (name === "nvfp4") {
      const exponent = Math.min(14, Math.max(1, Math.round(8 + Math.log2(size / 5))));
      for (let part = 0; part < 4; part++) bytes[block + part] = (exponent << 3) | (rng.uint32() & 7);
    }
    if (name === "mxfp4") bytes[block] = 128 + Math.round(Math.log2(size / 5)) + (rng.uint32() % 3) - 1;
  }
  return bytes;
}

export interface WeightBox {
  readonly source: WeightSource;
  /** A new random matrix, or a stack of them. Values of about `size`, by default 1 / sqrt(inDim). */
  matrix(shape: MatrixOptions): Weight;
  /** A new random vector of float32 around `mean`. */
  vector(len: number, options?: { mean?: number; size?: number }): Weight;
}

export interface MatrixOptions {
  readonly inDim: number;
  readonly outDim: number;
  readonly quant?: QuantName;
  readonly experts?: number;
  readonly size?: number;
  readonly bytes?: readonly number[];
}

/** Makes weights and serves them. All are drawn when the first is read, in the order of making. */
export function makeWeightBox(path: string, rng: Rng): WeightBox {
  const names: string[] = [];
  const drawn: Uint8Array[] = [];
  const draws: (() => Uint8Array)[] = [];
  const keep = (draw: () => Uint8Array): string => {
    const name = `w${draws.push(draw) - 1}.weight`;
    names.push(name);
    return name;
  };
  const read = (name: string): Uint8Array => {
    while (drawn.length < draws.length) drawn.push(draws[drawn.length]!());
    return drawn[names.indexOf(name)]!;
  };
  return {
    source: { path, read },
    matrix: ({ inDim, outDim, quant = "f32", experts = 1, size = 1 / Math.sqrt(inDim), bytes }) => {
      const name = keep(() => randomBlocks(quant, inDim * outDim * experts, { size, rng, bytes }));
      return { name, quant: quants[quant], inDim, outDim, rowStart: 0, tensorRows: outDim, experts };
    },
    vector: (len, { mean = 0, size = 0.3 } = {}) => {
      const name = keep(() => {
        const values = gaussians(len, rng, (normal) => mean + size * normal);
        return new Uint8Array(values.buffer);
      });
      return { name, quant: quants.f32, inDim: len, outDim: 1, rowStart: 0, tensorRows: 1, experts: 1 };
    },
  };
}
