/**
 * Random weights for tests, in memory: blocks of every type with scales that give values of a chosen size, and a source
 * that serves them to a backend like a file.
 */
import type { WeightSource } from "../../src/engine/program/backend.ts";
import type { Weight } from "../../src/engine/program/step.ts";
import { setScales } from "../../src/engine/backends/selftest/blocks.ts";
import { floatToHalf } from "../../src/engine/formats/half.ts";
import type { Rng } from "../../src/engine/text/rng.ts";
import { quants, type QuantName } from "../../src/engine/formats/quant/index.ts";

/** A number of the standard normal distribution (Box and Muller, 1958). */
export function gaussian(rng: Rng): number {
  return Math.sqrt(-2 * Math.log(1 - rng.float())) * Math.cos(2 * Math.PI * rng.float());
}

/** `count` numbers, each mapped by `value`: the numbers of `gaussian`, drawn by blocks, which is three times faster. */
export function gaussians(count: number, rng: Rng, value: (normal: number) => number): Float32Array<ArrayBuffer> {
  const values = new Float32Array(count);
  const uniforms = new Float64Array(2 * Math.min(count, BLOCK));
  for (let from = 0; from < count; from += BLOCK) {
    const end = Math.min(from + BLOCK, count);
    drawFloats(rng, uniforms.subarray(0, 2 * (end - from)));
    for (let i = from, u = 0; i < end; i++, u += 2)
      values[i] = value(Math.sqrt(-2 * Math.log(1 - uniforms[u]!)) * Math.cos(2 * Math.PI * uniforms[u + 1]!));
  }
  return values;
}

const BLOCK = 1024;

/** Fills `floats` with the next numbers of `rng.float()`. The state stays in registers; no call for each number. */
function drawFloats({ state }: Rng, floats: Float64Array): void {
  const words = new Int32Array(state.buffer, state.byteOffset, 4);
  let [a, b, c, d] = [words[0]!, words[1]!, words[2]!, words[3]!];
  let high = 0;
  for (let i = 0; i < 2 * floats.length; i++) {
    const product = Math.imul(b, 5);
    const bits = Math.imul((product << 7) | (product >>> 25), 9) >>> 0;
    if (i % 2 === 0) high = bits >>> 5;
    else floats[i >>> 1] = (high * 2 ** 26 + (bits >>> 6)) / 2 ** 53;
    const t = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= t;
    d = (d << 11) | (d >>> 21);
  }
  words.set([a, b, c, d]);
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

/** Packed blocks of `count` random weights of about this size. */
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
  setScales(name, bytes, { size, rng });
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

/** Creates weights and serves them. All are drawn at the first read, in order of creation. */
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
