/**
 * Opens a GGUF model: headers are read into memory, window by window; weights are mapped and read when a tensor is
 * requested.
 */
import { AppError, assert } from "../../../base/index.ts";
import type { Gguf, TensorInfo } from "./gguf.ts";
import { makeCursor, moveWindow } from "./cursor.ts";
import { headerSteps, MAX_HEADER_BYTES, type Header, type ParseOptions } from "./parse.ts";
import { joinTensors, missingPart, shardPaths } from "./shards.ts";
import type { ByteSource, OpenSource } from "./source.ts";

/** Size of a header's window. */
const WINDOW_BYTES = 2 ** 20;

/** One file of a model. */
interface Shard {
  readonly file: ByteSource;
  readonly header: Header;
}

type OpenOptions = Pick<ParseOptions, "asTexts">;

/**
 * Opens a model; a split one by its first part.
 * Throws `not_found`, `bad_file`, or `unsupported` for block types that we cannot read; then no file stays open.
 */
export function openGgufFrom(open: OpenSource, path: string, options: OpenOptions = {}): Gguf {
  const shards: Shard[] = [];
  try {
    const first = openShard(open, path, { ...options, shard: 0 });
    shards.push(first);
    const paths = shardPaths(path, first.header.metadata);
    for (const [i, part] of paths.entries())
      if (i > 0) shards.push(openPart(open, part, { shard: i, count: paths.length }));
    return joinShards(paths, shards);
  } catch (error) {
    for (const { file } of shards) file.close();
    throw error;
  }
}

function openShard(open: OpenSource, path: string, options: OpenOptions & { shard: number }): Shard {
  const file = open(path);
  try {
    return { file, header: readHeader(file, path, options) };
  } catch (error) {
    file.close();
    throw error;
  }
}

function readHeader(file: ByteSource, path: string, options: OpenOptions & { shard: number }): Header {
  const fileBytes = file.byteLength;
  const end = Math.min(fileBytes, MAX_HEADER_BYTES);
  const cursor = makeCursor(new Uint8Array(0), path, end);
  const steps = headerSteps(cursor, { ...options, fileBytes });
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
    const length = Math.min(Math.max(step.value, WINDOW_BYTES), end - cursor.at);
    moveWindow(cursor, file.view(cursor.at, length));
  }
}

function openPart(open: OpenSource, path: string, { shard, count }: { shard: number; count: number }): Shard {
  try {
    return openShard(open, path, { shard });
  } catch (error) {
    throw missingPart(error, { path, shard, count });
  }
}

function joinShards(paths: readonly string[], shards: readonly Shard[]): Gguf {
  const path = paths[0]!; // a model has at least one file
  const { version, metadata, texts } = shards[0]!.header;
  const headers = shards.map(({ header }) => header);
  const tensors = joinTensors(paths, headers);
  const views = new Map<string, Uint8Array>();
  const find = (tensorName: string): { file: ByteSource; info: TensorInfo } => {
    const info = tensors.get(tensorName);
    if (info) return { file: shards[info.shard]!.file, info };
    throw new AppError("bad_file", `${path}: expected a tensor '${tensorName}', got none`);
  };
  return {
    path,
    version,
    metadata,
    texts,
    tensors,
    fileBytes: shards.reduce((sum, { file }) => sum + file.byteLength, 0),
    read(tensorName) {
      const known = views.get(tensorName);
      if (known) return known;
      const { file, info } = find(tensorName);
      const view = file.view(info.offset, info.byteLength);
      if (!file.copies) views.set(tensorName, view);
      return view;
    },
    readRange(tensorName, start, length) {
      const { file, info } = find(tensorName);
      assert(start >= 0 && start + length <= info.byteLength, `${path}: '${tensorName}': a range outside of it`);
      return file.copies
        ? file.view(info.offset + start, length)
        : this.read(tensorName).subarray(start, start + length);
    },
    place(tensorName) {
      const { file, info } = find(tensorName);
      return { file, offset: info.offset, byteLength: info.byteLength };
    },
    close() {
      for (const { file } of shards) file.close();
      views.clear();
    },
  };
}
