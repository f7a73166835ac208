/** Opens a GGUF file: the header is read into memory, the weights stay in the file until someone asks for a tensor. */
import { AppError } from "../base/errors.ts";
import type { Gguf } from "./gguf.ts";
import { mapFile, type FileMap } from "./map.ts";
import { parseGguf, type Header } from "./parse.ts";

/** The largest header seen is 16 MB (Gemma 4's vocabulary); nothing beyond this is looked at as header. */
const MAX_HEADER_BYTES = 256 * 2 ** 20;

/** One mapped file of a model and its header. */
export interface Shard {
  readonly file: FileMap;
  readonly header: Header;
}

/** Opens a model. Throws `not_found`, `bad_file`, or `unsupported` for block types that we cannot read. */
export function openGguf(path: string): Gguf {
  const shards = [openShard(path, 0)];
  return joinShards(path, shards);
}

/** Opens one file. Nothing stays open where its header is bad. */
export function openShard(path: string, shard: number): Shard {
  const file = mapFile(path);
  try {
    const head = file.view(0, Math.min(file.byteLength, MAX_HEADER_BYTES));
    return { file, header: parseGguf(head, path, { fileBytes: file.byteLength, shard }) };
  } catch (error) {
    file.close();
    throw error;
  }
}

function joinShards(path: string, shards: readonly Shard[]): Gguf {
  const first = shards[0]!.header; // a model has at least one file
  const tensors = first.tensors;
  const views = new Map<string, Uint8Array>();
  return {
    path,
    version: first.version,
    metadata: first.metadata,
    tensors,
    fileBytes: shards.reduce((sum, { file }) => sum + file.byteLength, 0),
    read(tensorName) {
      const info = tensors.get(tensorName);
      if (!info) throw new AppError("bad_file", `${path}: expected a tensor '${tensorName}', got none`);
      let view = views.get(tensorName);
      if (!view) views.set(tensorName, (view = shards[info.shard]!.file.view(info.offset, info.byteLength)));
      return view;
    },
    close() {
      for (const { file } of shards) file.close();
      views.clear();
    },
  };
}
