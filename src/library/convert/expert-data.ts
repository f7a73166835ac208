/**
 * Stacked matrices of experts as gpt-oss stores them: transposed, or as MXFP4 blocks in a separate tensor from their
 * scales. Gate and up alternate in one matrix, so each takes every second row. At most one expert is in memory.
 */
import { open } from "node:fs/promises";
import { AppError } from "../../base/index.ts";
import { reading } from "../../base/system.ts";
import { quants, type Quant } from "../../engine/formats/index.ts";
import type { ExpertRows } from "./architecture.ts";
import type { SafeTensor } from "./safetensors.ts";
import { readPiece, roundTo, sourceType } from "./tensor-data.ts";

/** A published expert has 34 MB. */
const EXPERT_BYTES_MAX = 256 * 2 ** 20;
/** MXFP4 has 32 weights in a block. */
const [BLOCK_LEN, NIBBLE_BYTES] = [32, 16];

export interface ExpertSource {
  readonly tensor: SafeTensor;
  /** Scales of MXFP4 blocks; undefined: the tensor is transposed floats. */
  readonly scales: SafeTensor | undefined;
  readonly rows: ExpertRows;
}

/** Two weights, or an exponent, in each byte. */
export const isBytes = ({ dtype }: SafeTensor): boolean => ["U8", "I8", "F8_E8M0"].includes(dtype);

/** The type and shape in a GGUF, slowest-varying dimension first. Throws `bad_file` for another layout. */
export function plannedExperts(
  source: ExpertSource,
  label: string,
): { readonly shape: readonly number[]; readonly quant: Quant | undefined } {
  const { tensor, scales, rows } = source;
  const { shape } = tensor;
  const wrong = (expected: string): AppError =>
    new AppError("bad_file", `${label}: tensor '${tensor.name}': expected ${expected}, got (${shape.join(", ")})`);
  const [experts = 0, second = 0, third = 0] = shape;
  if (shape.includes(0) || shape.length < 3) throw wrong("3 or more dimensions above 0");
  if (tensor.byteLength / experts > EXPERT_BYTES_MAX) throw wrong(`experts of at most ${EXPERT_BYTES_MAX} bytes`);
  const allRows = scales ? second : third;
  if (allRows % rows.step !== 0) throw wrong(`a multiple of ${rows.step} rows`);
  if (!scales) {
    if (shape.length !== 3) throw wrong("(experts, inDim, rows)");
    return { shape: [experts, allRows / rows.step, second], quant: undefined };
  }
  const isPacked = shape.length === 4 && shape[3] === NIBBLE_BYTES && isBytes(tensor) && isBytes(scales);
  const isPaired = String(scales.shape) === String(shape.slice(0, 3));
  if (!isPacked || !isPaired)
    throw wrong(`bytes of (experts, rows, blocks, ${NIBBLE_BYTES}) and a scale for each block`);
  return { shape: [experts, allRows / rows.step, third * BLOCK_LEN], quant: quants.mxfp4 };
}

/** Yields the weights of one expert after another, in the type `to`. */
export async function* expertData(source: ExpertSource, to: Quant, label: string): AsyncGenerator<Uint8Array> {
  const { tensor, scales, rows } = source;
  const [experts = 0, second = 0, third = 0] = tensor.shape;
  const length = tensor.byteLength / experts;
  await using file = await reading(`${label}: tensor '${tensor.name}'`, open(tensor.path, "r"));
  if (!scales) {
    const from = sourceType(tensor, label);
    const rounding = { from, to, value: undefined, what: `${label}: '${tensor.name}'` };
    for (let expert = 0; expert < experts; expert++) {
      const matrix = await readPiece(file, { tensor, offset: expert * length, length, label });
      yield roundTo(columnsOf(matrix, { columns: third, height: second, itemBytes: from.blockBytes, rows }), rounding);
    }
    return;
  }
  await using scaleFile = await reading(`${label}: tensor '${scales.name}'`, open(scales.path, "r"));
  const scaleLength = scales.byteLength / experts;
  for (let expert = 0; expert < experts; expert++) {
    const nibbles = await readPiece(file, { tensor, offset: expert * length, length, label });
    const each = { tensor: scales, offset: expert * scaleLength, length: scaleLength, label };
    yield blocksOf(nibbles, await readPiece(scaleFile, each), { allRows: second, perRow: third, rows });
  }
}

/** Every `step`-th column of a matrix (height, columns), as a row. */
function columnsOf(
  matrix: Uint8Array,
  { columns, height, itemBytes, rows }: { columns: number; height: number; itemBytes: number; rows: ExpertRows },
): Uint8Array {
  const out = new Uint8Array(matrix.length / rows.step);
  let to = 0;
  for (let column = rows.first; column < columns; column += rows.step) {
    for (let row = 0; row < height; row++) {
      const from = (row * columns + column) * itemBytes;
      for (let i = 0; i < itemBytes; i++) out[to++] = matrix[from + i]!; // in range: the shape was checked
    }
  }
  return out;
}

/** Blocks of every `step`-th row: the scale first, and a byte holds values i and i + 16, not neighbours. */
function blocksOf(
  nibbles: Uint8Array,
  scales: Uint8Array,
  { allRows, perRow, rows }: { allRows: number; perRow: number; rows: ExpertRows },
): Uint8Array {
  const out = new Uint8Array((allRows / rows.step) * perRow * (1 + NIBBLE_BYTES));
  let to = 0;
  for (let row = rows.first; row < allRows; row += rows.step) {
    for (let block = row * perRow; block < (row + 1) * perRow; block++) {
      out[to++] = scales[block]!; // in range: the shape was checked
      const at = block * NIBBLE_BYTES;
      for (let i = 0; i < NIBBLE_BYTES; i++) {
        const shift = (i % 2) * 4;
        const [first, second] = [nibbles[at + (i >> 1)]!, nibbles[at + NIBBLE_BYTES / 2 + (i >> 1)]!];
        out[to++] = ((first >> shift) & 15) | (((second >> shift) & 15) << 4);
      }
    }
  }
  return out;
}
