/** Widens a model's weights, to quantize them to all types, and to compare sums without 8-bit rounding. */
import { existsSync } from "node:fs";
import { readHeader } from "../../src/engine/formats/files/read-header.ts";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteTensor } from "../../src/engine/formats/files/write.ts";
import type { Gguf } from "../../src/engine/formats/gguf/gguf.ts";
import { quants } from "../../src/engine/formats/quant/index.ts";
import { writableMetadata } from "../../src/library/create/quantize-metadata.ts";

/** `general.file_type` of each type. */
const FILE_TYPES = { f32: 0, f16: 1 } as const;
const CHUNK_ROWS = 1024;

/** Writes `from` to `to` unless that file exists. Vectors stay float32. */
export async function dequantize(from: string, to: string, type: keyof typeof FILE_TYPES): Promise<string> {
  if (existsSync(to)) return to;
  const header = await readHeader(from);
  const start = Math.min(...[...header.tensors.values()].map(({ offset }) => offset));
  const bytes = new Uint8Array(await Bun.file(from).slice(0, start).arrayBuffer());
  const metadata = writableMetadata(bytes, header.metadata, from);
  metadata["general.file_type"] = { u32: FILE_TYPES[type] };
  const gguf = openGguf(from);
  try {
    const tensors = [...gguf.tensors.values()].map(({ name, shape }): WriteTensor => {
      const quant = shape.length === 1 ? quants.f32 : quants[type];
      return { name, shape, quant, data: rowsOf(gguf, name, quant.name === "f16") };
    });
    await writeGguf(to, { metadata, tensors });
  } finally {
    gguf.close();
  }
  return to;
}

function* rowsOf(gguf: Gguf, name: string, halves: boolean): Generator<Uint8Array> {
  const { quant, shape } = gguf.tensors.get(name)!;
  const packed = gguf.read(name);
  const rowLength = shape[0]!;
  const rowBytes = (rowLength / quant.blockLen) * quant.blockBytes;
  for (let at = 0; at < packed.length; at += CHUNK_ROWS * rowBytes) {
    const rows = packed.subarray(at, at + CHUNK_ROWS * rowBytes);
    const values = new Float32Array((rows.length / rowBytes) * rowLength);
    quant.dequantize(rows, values);
    const out = halves ? Float16Array.from(values) : values;
    yield new Uint8Array(out.buffer);
  }
}
