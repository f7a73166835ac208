/**
 * Matrices of floats in 8 bits (E4M3), whose blocks of 128 by 128 weights share a scale, as DeepSeek publishes them.
 * They become BF16, which holds each product with a power of two.
 */
import { open } from "node:fs/promises";
import { AppError } from "../../base/index.ts";
import { reading } from "../../base/system.ts";
import { bf16, f32 } from "../../engine/formats/index.ts";
import type { SafeTensor } from "./safetensors.ts";
import { readPiece, roundTo } from "./tensor-data.ts";

const BLOCK = 128;
const PIECE_BYTES = 2 ** 20;
/** Scales of the largest published matrix have 1 MB. */
const SCALE_BYTES_MAX = 64 * 2 ** 20;

export interface BlockScaledSource {
  readonly tensor: SafeTensor;
  readonly blockScales: SafeTensor;
}

/** Names of scales, by names of the weights. */
const SCALES = [".scale", ".weight_scale_inv"] as const;

export const isBlockScaled = ({ dtype }: SafeTensor): boolean => dtype === "F8_E4M3";

/** Returns whether a tensor holds the scales of another one, with which it is read. */
export function isScales(name: string, byName: ReadonlyMap<string, SafeTensor>): boolean {
  const ending = SCALES.find((each) => name.endsWith(each));
  const owner = ending && byName.get(`${name.slice(0, -ending.length)}.weight`);
  return owner !== undefined && ["F8_E4M3", "I8"].includes(owner.dtype);
}

/** The source of a matrix in 8 bits. Throws `bad_file` without fitting scales. */
export function blockScaled(
  tensor: SafeTensor,
  { byName, label }: { byName: ReadonlyMap<string, SafeTensor>; label: string },
): BlockScaledSource {
  const names = SCALES.map((ending) => tensor.name.replace(/\.weight$/, ending));
  const blockScales = names.map((name) => byName.get(name)).find((found) => found !== undefined);
  const [rows = 0, columns = 0] = tensor.shape;
  const shape = [Math.ceil(rows / BLOCK), Math.ceil(columns / BLOCK)];
  const fits =
    tensor.shape.length === 2 &&
    blockScales !== undefined &&
    String(blockScales.shape) === String(shape) &&
    ["F8_E8M0", "F32"].includes(blockScales.dtype) &&
    blockScales.byteLength <= SCALE_BYTES_MAX;
  if (fits) return { tensor, blockScales };
  const expected = `a matrix, and (${shape.join(", ")}) scales of F8_E8M0 or F32 in '${names.join("' or '")}'`;
  const got = blockScales ? `${blockScales.dtype} of (${blockScales.shape.join(", ")})` : "none";
  throw new AppError("bad_file", `${label}: tensor '${tensor.name}': expected ${expected}, got ${got}`);
}

/** Yields rows as BF16. */
export async function* blockScaledData(source: BlockScaledSource, label: string): AsyncGenerator<Uint8Array> {
  const { tensor, blockScales } = source;
  const [rows = 0, columns = 0] = tensor.shape;
  const scales = await scalesOf(blockScales, label);
  const perRow = Math.ceil(columns / BLOCK);
  const rowsMax = Math.max(1, Math.floor(PIECE_BYTES / columns));
  await using file = await reading(`${label}: tensor '${tensor.name}'`, open(tensor.path, "r"));
  for (let first = 0; first < rows; first += rowsMax) {
    const count = Math.min(rowsMax, rows - first);
    const place = { tensor, offset: first * columns, length: count * columns, label };
    const bytes = await readPiece(file, place);
    const weights = Float32Array.from(bytes, (byte, i) => {
      const block = Math.floor((first + Math.floor(i / columns)) / BLOCK) * perRow + Math.floor((i % columns) / BLOCK);
      return E4M3[byte]! * scales[block]!;
    });
    const rounding = { from: f32, to: bf16, value: undefined, what: `${label}: '${tensor.name}'` };
    yield roundTo(new Uint8Array(weights.buffer), rounding);
  }
}

async function scalesOf(tensor: SafeTensor, label: string): Promise<Float32Array> {
  await using file = await reading(`${label}: tensor '${tensor.name}'`, open(tensor.path, "r"));
  const bytes = await readPiece(file, { tensor, offset: 0, length: tensor.byteLength, label });
  if (tensor.dtype === "F8_E8M0") return Float32Array.from(bytes, (exponent) => 2 ** (exponent - 127));
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
}

/** The value of each byte: a sign, 4 bits of exponent and 3 of fraction, no infinities. (OCP 8-bit floating point) */
const E4M3 = Float32Array.from({ length: 256 }, (_, byte) => {
  const [exponent, fraction] = [(byte >> 3) & 15, byte & 7];
  if (exponent === 15 && fraction === 7) return NaN;
  const size = exponent === 0 ? fraction * 2 ** -9 : (8 + fraction) * 2 ** (exponent - 10);
  return byte < 128 ? size : -size;
});
