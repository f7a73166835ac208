/**
 * JPEG to pixels with the arithmetic of stb_image, by which the reference decodes: libraries that decode with libjpeg's
 * differ by up to three levels, and then nothing behind them can be compared. Baseline and progressive, 8 bits.
 */
import { broken, type RgbImage, type Size } from "./image.ts";
import { readImageHeader } from "./image-header.ts";
import { readJpeg, type Component, type Frame, type Jpeg } from "./jpeg-frame.ts";
import { decodeScan } from "./jpeg-scan.ts";

/**
 * Throws `bad_request`, saying what is wrong.
 * @param size that was checked; a frame of another is refused before anything is allocated for it
 */
export function decodeJpeg(bytes: Uint8Array, size: Size = readImageHeader(bytes)): RgbImage {
  const jpeg = readJpeg(bytes, size, (frame, scan) => decodeScan(bytes, frame, scan));
  const { frame } = jpeg;
  const { width, height, components } = frame;
  const lines = components.map((component) => {
    const samples = samplesOf(component, jpeg);
    component.coefficients.buffer.transfer(0); // freed now, not when garbage is collected
    return upsampler(component, samples, frame);
  });
  const data = new Uint8Array(width * height * 3);
  const convert = converterOf(jpeg);
  for (let y = 0; y < height; y++)
    convert(
      lines.map((line) => line(y)),
      data.subarray(y * width * 3, (y + 1) * width * 3),
    );
  return { width, height, data };
}

/** A component's samples, (8 · blocksHigh, 8 · blocksWide). */
function samplesOf(
  { coefficients, blocksWide, blocksHigh, table }: Component,
  { quantization }: Jpeg,
): Uint8ClampedArray {
  const scale = quantization[table];
  if (!scale) throw broken("a quantization table is missing");
  const stride = 8 * blocksWide;
  const out = new Uint8ClampedArray(stride * 8 * blocksHigh);
  const block = new Int32Array(64);
  const sums = new Int32Array(8);
  let at = 0;
  for (let top = 0; top < out.length; top += 8 * stride) {
    for (let left = 0; left < stride; left += 8, at += 64) {
      for (let i = 0; i < 64; i++) block[i] = ((coefficients[at + i]! * scale[i]!) << 16) >> 16; // as 16 bits
      inverse(block, sums, out, top + left, stride);
    }
  }
  return out;
}

/** A factor as a whole number of 4096ths. */
const fixed = (x: number): number => Math.trunc(Math.fround(x) * 4096 + 0.5);
const [EVEN, EVEN_LOW, EVEN_HIGH] = [fixed(0.5411961), fixed(-1.847759065), fixed(0.765366865)];
const [OWN_7, OWN_5, OWN_3, OWN_1] = [fixed(0.298631336), fixed(2.053119869), fixed(3.072711026), fixed(1.50132111)];
const ODD = fixed(1.175875602);
const [OUTER, INNER] = [fixed(-0.899976223), fixed(-2.562915447)];
const [THIRDS, FIFTHS] = [fixed(-1.96157056), fixed(-0.390180644)];

/** Of a line or a column the four sums of its even values, then those of its odd ones: results are made of both. */
function transform(d: Int32Array, at: number, step: number, sums: Int32Array): void {
  const s0 = d[at]!;
  const s1 = d[at + step]!;
  const s2 = d[at + 2 * step]!;
  const s3 = d[at + 3 * step]!;
  const s4 = d[at + 4 * step]!;
  const s5 = d[at + 5 * step]!;
  const s6 = d[at + 6 * step]!;
  const s7 = d[at + 7 * step]!;
  const both = (s2 + s6) * EVEN;
  const low = both + s6 * EVEN_LOW;
  const high = both + s2 * EVEN_HIGH;
  sums[0] = (s0 + s4) * 4096 + high;
  sums[1] = (s0 - s4) * 4096 + low;
  sums[2] = (s0 - s4) * 4096 - low;
  sums[3] = (s0 + s4) * 4096 - high;
  const all = (s7 + s3 + s5 + s1) * ODD;
  const outer = all + (s7 + s1) * OUTER;
  const inner = all + (s5 + s3) * INNER;
  const thirds = (s7 + s3) * THIRDS;
  const fifths = (s5 + s1) * FIFTHS;
  sums[4] = s1 * OWN_1 + outer + fifths;
  sums[5] = s3 * OWN_3 + inner + thirds;
  sums[6] = s5 * OWN_5 + inner + fifths;
  sums[7] = s7 * OWN_7 + outer + thirds;
}

/** The inverse transform of a block, which is overwritten, and its samples from `place` on. */
function inverse(block: Int32Array, sums: Int32Array, out: Uint8ClampedArray, place: number, stride: number): void {
  for (let x = 0; x < 8; x++) {
    transform(block, x, 8, sums);
    for (let i = 0; i < 4; i++) {
      const even = sums[i]! + 512;
      block[x + 8 * i] = (even + sums[4 + i]!) >> 10;
      block[x + 8 * (7 - i)] = (even - sums[4 + i]!) >> 10;
    }
  }
  for (let y = 0; y < 8; y++) {
    transform(block, 8 * y, 1, sums);
    for (let i = 0; i < 4; i++) {
      const even = sums[i]! + 65_536 + (128 << 17);
      out[place + y * stride + i] = (even + sums[4 + i]!) >> 17;
      out[place + y * stride + 7 - i] = (even - sums[4 + i]!) >> 17;
    }
  }
}

type Line = Uint8Array | Uint8ClampedArray;

/** A function that makes lines of a component as long as the picture is wide. What it returns is used again. */
function upsampler(
  { h, v, blocksWide }: Component,
  samples: Uint8ClampedArray,
  { width, height, maxH, maxV }: Frame,
): (y: number) => Line {
  const [wide, tall] = [maxH / h, maxV / v];
  const stride = 8 * blocksWide;
  const rows = Math.ceil((height * v) / maxV);
  const count = Math.ceil(width / wide);
  const out = new Uint8Array(count * wide);
  const lineAt = (row: number): Uint8ClampedArray => {
    const at = Math.max(0, Math.min(rows - 1, row)) * stride;
    return samples.subarray(at, at + stride);
  };
  if (wide === 1 && tall === 1) return lineAt;
  return (y) => {
    const row = Math.floor(y / tall);
    const near = lineAt(row);
    const far = lineAt(y % 2 === 1 ? row + 1 : row - 1); // where there are two lines to one
    if (wide === 1 && tall === 2) for (let i = 0; i < count; i++) out[i] = (3 * near[i]! + far[i]! + 2) >> 2;
    else if (wide === 2 && tall === 1) stretchLine(out, near, count);
    else if (wide === 2 && tall === 2) stretchBoth(out, { near, far }, count);
    else for (let i = 0; i < out.length; i++) out[i] = near[Math.floor(i / wide)]!;
    return out;
  };
}

/**
 * Twice as many values: each between two, the nearer of which weighs three times as much; but for the last value but
 * one, where the reference has them the other way round.
 */
function stretchLine(out: Uint8Array, line: Line, count: number): void {
  const last = count - 1;
  for (let i = 0; i < count; i++) {
    const middle = 3 * line[i]! + 2;
    out[2 * i] = i === 0 ? line[0]! : (middle + line[i - 1]!) >> 2;
    out[2 * i + 1] = i === last ? line[last]! : (middle + line[i + 1]!) >> 2;
  }
  if (last > 0) out[2 * last] = (3 * line[last - 1]! + line[last]! + 2) >> 2;
}

/** The same across and down at once. */
function stretchBoth(out: Uint8Array, { near, far }: Record<"near" | "far", Line>, count: number): void {
  let before = 3 * near[0]! + far[0]!;
  out[0] = (before + 2) >> 2;
  for (let i = 1; i < count; i++) {
    const now = 3 * near[i]! + far[i]!;
    out[2 * i - 1] = (3 * before + now + 8) >> 4;
    out[2 * i] = (3 * now + before + 8) >> 4;
    before = now;
  }
  out[2 * count - 1] = (before + 2) >> 2;
}

type Convert = (lines: readonly Line[], out: Uint8Array) => void;

/** From a line of each component to pixels. */
function converterOf({ frame: { components }, transform: adobe, isJfif }: Jpeg): Convert {
  if (components.length === 1) {
    return ([gray], out) => {
      for (let i = 0; i < out.length; i++) out[i] = gray![Math.floor(i / 3)]!;
    };
  }
  const isRgb = components.map(({ id }) => String.fromCharCode(id)).join("") === "RGB" || (adobe === 0 && !isJfif);
  if (components.length === 3) return isRgb ? interleave : toRgb;
  if (adobe !== 0 && adobe !== 2) return toRgb;
  const ink = adobe === 0 ? interleave : toRgb;
  return (lines, out) => {
    ink(lines, out);
    const black = lines[3]!;
    for (let i = 0; i < out.length; i++) {
      const product = (adobe === 0 ? out[i]! : 255 - out[i]!) * black[Math.floor(i / 3)]! + 128;
      out[i] = (product + (product >> 8)) >> 8;
    }
  };
}

const interleave: Convert = (lines, out) => {
  for (let i = 0; i < out.length; i++) out[i] = lines[i % 3]![Math.floor(i / 3)]!;
};

/** A factor as a whole number of 2²⁰ths, of which the last eight bits are zeros. */
const fixed20 = (x: number): number => Math.trunc(Math.fround(x) * 4096 + 0.5) << 8;
const [RED, GREEN_RED, GREEN_BLUE, BLUE] = [fixed20(1.402), fixed20(0.71414), fixed20(0.34414), fixed20(1.772)];

const clamp = (value: number): number => Math.max(0, Math.min(255, value >> 20));

/** From luma and two differences of colour. */
const toRgb: Convert = ([lumas, blues, reds], out) => {
  for (let at = 0, i = 0; at < out.length; at += 3, i++) {
    const luma = (lumas![i]! << 20) + (1 << 19);
    const red = reds![i]! - 128;
    const blue = blues![i]! - 128;
    out[at] = clamp(luma + red * RED);
    out[at + 1] = clamp(luma - red * GREEN_RED + ((-blue * GREEN_BLUE) & 0xffff0000));
    out[at + 2] = clamp(luma + blue * BLUE);
  }
};
