/**
 * Models split over several files, as `llama-gguf-split` writes them: `NAME-00001-of-00005.gguf`, each a GGUF with its
 * own tensors, the first with all metadata, all with `split.no` (from 0), `split.count` and `split.tensors.count`.
 * No I/O here.
 */
import { AppError } from "../../../base/index.ts";
import type { Metadata, TensorInfo } from "./gguf.ts";
import { inFile } from "./in-file.ts";
import { getNumber } from "./keys.ts";
import type { Header } from "./parse.ts";

/** Each part costs a mapping; models of 1 TB have about 30 parts. */
const MAX_SHARDS = 1024;

const NAME = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/;

/**
 * Paths of all parts, the given one first; only that one if the model is not split.
 * Throws `bad_file` if `path` is not the first part or not named like one.
 */
export function shardPaths(path: string, metadata: Metadata): string[] {
  const count = inFile(path, () => getNumber(metadata, "split.count", 1));
  if (!Number.isInteger(count) || count < 0 || count > MAX_SHARDS) {
    const expected = `a whole number from 0 to ${MAX_SHARDS}`;
    throw new AppError("bad_file", `${path}: metadata 'split.count': expected ${expected}, got ${count}`);
  }
  if (count <= 1) return [path];
  const named = NAME.exec(path);
  const no = inFile(path, () => getNumber(metadata, "split.no"));
  if (no !== 0) {
    const first = named ? `'${named[1]}-${digits(1)}-of-${named[3]}.gguf'` : "the first part";
    throw new AppError(
      "bad_file",
      `${path}: this is part ${no + 1} of ${count} of a split model; open ${first} instead`,
    );
  }
  if (!named || Number(named[2]) !== 1 || Number(named[3]) !== count) {
    const expected = `a name that ends in '-${digits(1)}-of-${digits(count)}.gguf', to find the other parts by`;
    throw new AppError("bad_file", `${path}: part 1 of ${count} of a split model: expected ${expected}, got another`);
  }
  return Array.from({ length: count }, (_, i) => `${named[1]}-${digits(i + 1)}-of-${digits(count)}.gguf`);
}

/** The tensors of all parts. Throws `bad_file` if a part belongs to another split or the tensors do not add up. */
export function joinTensors(paths: readonly string[], headers: readonly Header[]): Map<string, TensorInfo> {
  const tensors = new Map<string, TensorInfo>();
  for (const [i, { metadata, tensors: own }] of headers.entries()) {
    const no = inFile(paths[i], () => getNumber(metadata, "split.no", 0));
    const count = inFile(paths[i], () => getNumber(metadata, "split.count", 1));
    if (paths.length > 1 && (no !== i || count !== paths.length)) {
      const found = `part ${no + 1} of ${count}`;
      throw new AppError("bad_file", `${paths[i]}: expected part ${i + 1} of ${paths.length}, got ${found}`);
    }
    for (const [name, tensor] of own) {
      if (tensors.has(name)) throw new AppError("bad_file", `${paths[i]}: tensor '${name}' is also in an earlier part`);
      tensors.set(name, tensor);
    }
  }
  const [first] = headers;
  const expected = first && inFile(paths[0], () => getNumber(first.metadata, "split.tensors.count", tensors.size));
  if (paths.length > 1 && expected !== tensors.size) {
    const found = `${tensors.size} in ${paths.length} parts`;
    throw new AppError("bad_file", `${paths[0]}: metadata 'split.tensors.count': expected ${expected}, got ${found}`);
  }
  return tensors;
}

/** The error for a part that cannot be opened: a missing file makes the whole model invalid. */
export function missingPart(error: unknown, part: { path: string; shard: number; count: number }): unknown {
  if (!(error instanceof AppError) || error.code !== "not_found") return error;
  const { path, shard, count } = part;
  const message = `${path}: expected part ${shard + 1} of ${count} of a split model, got no such file`;
  return new AppError("bad_file", message, { cause: error });
}

function digits(part: number): string {
  return String(part).padStart(5, "0");
}
