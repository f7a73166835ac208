/** Tensor infos of a GGUF header → places of the tensors, checked against the file. */
import { AppError } from "../../../base/index.ts";
import { quantOf, unreadableQuant } from "../quant/index.ts";
import { badFile, type Cursor } from "./cursor.ts";
import type { TensorInfo } from "./gguf.ts";

/** A tensor info, as in the file. */
export interface RawTensorInfo {
  readonly name: string;
  readonly shape: readonly number[];
  readonly ggmlType: number;
  /** Offset from the start of the data section. */
  readonly dataOffset: number;
  /** Offset of the info, for messages. */
  readonly at: number;
}

/** The start and the end of the data section. */
export interface Placement {
  readonly cursor: Cursor;
  readonly alignment: number;
  readonly dataOffset: number;
  readonly fileBytes: number;
  readonly shard: number;
}

/**
 * The place of each tensor in the file. Throws `bad_file` for a duplicate name, rows of partial blocks, a misaligned
 * offset, an end beyond the file, and overlapping tensors. A tensor whose type has an unknown size gets the bytes up to
 * the next tensor.
 */
export function placeTensors(infos: readonly RawTensorInfo[], placement: Placement): Map<string, TensorInfo> {
  const tensors = new Map<string, TensorInfo>();
  for (const info of infos) {
    if (info.name === "" || tensors.has(info.name)) {
      const expected = "a new name for each tensor";
      throw badFile(placement.cursor, { field: `tensor '${info.name}'`, at: info.at, expected, found: "it again" });
    }
    tensors.set(info.name, placeTensor(info, placement));
  }
  const inOrder = [...tensors.values()].sort((a, b) => a.offset - b.offset);
  checkOverlap(inOrder, placement.cursor.path);
  for (const [i, info] of inOrder.entries()) {
    if (info.quant.blockBytes > 0) continue;
    const end = inOrder[i + 1]?.offset ?? placement.fileBytes;
    tensors.set(info.name, { ...info, byteLength: end - info.offset });
  }
  return tensors;
}

function placeTensor(info: RawTensorInfo, { cursor, alignment, dataOffset, fileBytes, shard }: Placement): TensorInfo {
  const { name, shape, at } = info;
  const field = `tensor '${name}'`;
  const quant = quantOf(info.ggmlType) ?? unreadableQuant(info.ggmlType);
  const rowLen = shape[0]!; // at least one dimension: checked when read
  if (rowLen % quant.blockLen !== 0) {
    const expected = `rows of whole ${quant.name} blocks of ${quant.blockLen}`;
    throw badFile(cursor, { field, at, expected, found: `rows of ${rowLen}` });
  }
  if (info.dataOffset % alignment !== 0) {
    const expected = `an offset that is a multiple of ${alignment}`;
    throw badFile(cursor, { field, at, expected, found: String(info.dataOffset) });
  }
  const rows = shape.slice(1).reduce((product, size) => product * size, 1);
  // Sizes too large to be exact are larger than any file, so the comparison below still holds.
  const byteLength = (rowLen / quant.blockLen) * quant.blockBytes * rows;
  const offset = dataOffset + info.dataOffset;
  if (offset + byteLength > fileBytes) {
    const expected = `its ${byteLength} bytes inside the file's ${fileBytes}`;
    throw badFile(cursor, { field, at, expected, found: `an end at ${offset + byteLength}: truncated or damaged` });
  }
  return { name, shape, quant, byteLength, shard, offset };
}

/** @param tensors by offset */
function checkOverlap(tensors: readonly TensorInfo[], path: string): void {
  let previous: TensorInfo | undefined;
  for (const tensor of tensors) {
    const end = previous ? previous.offset + previous.byteLength : 0;
    if (tensor.offset < end) {
      const expected = `tensor '${tensor.name}' after the end of '${previous?.name}' at byte ${end}`;
      throw new AppError("bad_file", `${path}: expected ${expected}, got byte ${tensor.offset}: they overlap`);
    }
    previous = tensor;
  }
}
