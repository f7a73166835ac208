/** The embedded model with something else in it. */
import { resolve } from "node:path";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteTensor, type WriteValue } from "../../src/engine/formats/files/write.ts";

type Metadata = Record<string, WriteValue | undefined>;
export type Edit = (metadata: Metadata, tensors: Map<string, WriteTensor & { data: Uint8Array }>) => void;

export async function writeEdited(path: string, edit: Edit): Promise<void> {
  const gguf = openGguf(resolve(import.meta.dir, "../../models/hearth/hearth.gguf"));
  const metadata: Metadata = {};
  for (const [key, value] of gguf.metadata) metadata[key] = typed(value);
  const tensors = new Map(
    [...gguf.tensors.values()].map((info) => [info.name, { ...info, data: Uint8Array.from(gguf.read(info.name)) }]),
  );
  edit(metadata, tensors);
  const given = Object.entries(metadata).filter((entry): entry is [string, WriteValue] => entry[1] !== undefined);
  await writeGguf(path, { metadata: Object.fromEntries(given), tensors: [...tensors.values()] });
  gguf.close();
}

function typed(value: unknown): WriteValue {
  if (typeof value !== "number") return value as WriteValue; // the file has only these
  return Number.isInteger(value) ? { u32: value } : { f32: value };
}

/** Each layer twice: too large to be unpacked at load, so that its weights are read from the mapped file. */
export const twiceAsDeep: Edit = (metadata, tensors) => {
  const layers = metadata["llama.block_count"] as { u32: number };
  const again = Array.from(tensors.values(), (tensor) => {
    const name = tensor.name.replace(/^blk\.(\d+)/, (_, layer) => `blk.${Number(layer) + layers.u32}`);
    return { ...tensor, name };
  });
  for (const tensor of again) tensors.set(tensor.name, tensor);
  metadata["llama.block_count"] = { u32: 2 * layers.u32 };
};
