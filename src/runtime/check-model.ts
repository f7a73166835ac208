/** Checks by a file's header, before anything is stored, that its model can run here. */
import { closeSync, openSync, readSync } from "node:fs";
import { archs, loadProgram } from "../engine/architectures/index.ts";
import { AppError } from "../base/index.ts";
import { type Gguf, type ModelHeader, readHeader, repairGguf } from "../engine/formats/index.ts";
import { checkTokenizer } from "../engine/text/index.ts";
import { type CheckModel, HEADER_ARRAY_ITEMS_MAX } from "../library/making.ts";

/** Maximum bytes of a tensor whose values determine the model's steps, such as rotation factors. */
const TENSOR_BYTES_MAX = 2 ** 20;

/**
 * Throws `unsupported`, with the message of a load, for an unknown architecture variant or tokenizer. Damaged or
 * incomplete files are left for their load to report.
 */
export const checkModel: CheckModel = async ({ label, path }) => {
  try {
    const header = await readHeader(path, { arrayItemsMax: HEADER_ARRAY_ITEMS_MAX });
    const gguf = repairGguf(readable({ ...header, path: label }, path));
    const architecture = gguf.metadata.get("general.architecture");
    if (!Object.hasOwn(archs, String(architecture))) return;
    loadProgram(gguf);
    checkTokenizer(gguf.metadata, label);
  } catch (error) {
    if (!(error instanceof AppError) || error.code === "unsupported") throw error;
  }
};

/** Reads tensors one by one: this process must not map files that may be truncated. */
function readable(header: ModelHeader, path: string): Gguf {
  const readRange = (name: string, start: number, length: number): Uint8Array => {
    const tensor = header.tensors.get(name);
    if (!tensor || length > TENSOR_BYTES_MAX) throw new AppError("bad_file", `${path}: tensor '${name}' is not read`);
    const bytes = new Uint8Array(length);
    const fd = openSync(path, "r");
    try {
      readSync(fd, bytes, 0, length, tensor.offset + start);
    } finally {
      closeSync(fd);
    }
    return bytes;
  };
  return {
    ...header,
    read: (name) => readRange(name, 0, header.tensors.get(name)?.byteLength ?? 0),
    readRange,
    close() {},
  };
}
