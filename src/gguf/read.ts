/** Opens a GGUF model: headers are read into memory, weights stay in their files until someone asks for a tensor. */
import { AppError } from "../base/errors.ts";
import type { Gguf } from "./gguf.ts";
import { mapFile, type FileMap } from "./map.ts";
import { MAX_HEADER_BYTES, parseGguf, type Header } from "./parse.ts";
import { joinTensors, missingPart, shardPaths } from "./shards.ts";

/** One file of a model. */
interface Shard {
  readonly file: FileMap;
  readonly header: Header;
}

/**
 * Opens a model; of a split one, by its first part.
 * Throws `not_found`, `bad_file`, or `unsupported` for block types that we cannot read; nothing stays open then.
 */
export function openGguf(path: string): Gguf {
  const shards: Shard[] = [];
  try {
    const first = openShard(path, 0);
    shards.push(first);
    const paths = shardPaths(path, first.header.metadata);
    for (const [i, part] of paths.entries()) if (i > 0) shards.push(openPart(part, i, paths.length));
    return joinShards(paths, shards);
  } catch (error) {
    for (const { file } of shards) file.close();
    throw error;
  }
}

function openShard(path: string, shard: number): Shard {
  const file = mapFile(path);
  try {
    const head = file.view(0, Math.min(file.byteLength, MAX_HEADER_BYTES));
    return { file, header: parseGguf(head, path, { fileBytes: file.byteLength, shard }) };
  } catch (error) {
    file.close();
    throw error;
  }
}

function openPart(path: string, shard: number, count: number): Shard {
  try {
    return openShard(path, shard);
  } catch (error) {
    throw missingPart(error, { path, shard, count });
  }
}

function joinShards(paths: readonly string[], shards: readonly Shard[]): Gguf {
  const path = paths[0]!; // a model has at least one file
  const { version, metadata } = shards[0]!.header;
  const headers = shards.map(({ header }) => header);
  const tensors = joinTensors(paths, headers);
  const views = new Map<string, Uint8Array>();
  return {
    path,
    version,
    metadata,
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
