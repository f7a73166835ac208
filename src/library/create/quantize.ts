/**
 * Quantizes a whole model, GGUF to GGUF: `quantize-mix.ts` chooses the types, threads convert ranges of 256 thousand
 * weights, and the writer gets them in file order. Memory use does not depend on the size of the model. Equivalent to
 * `llama-quantize` (llama-quant.cpp) without importance matrix.
 */
import { open, realpath, stat } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { AppError } from "../../base/index.ts";
import { quantizeModule } from "../../engine/backends/index.ts";
import {
  i32,
  MAX_HEADER_BYTES,
  type ModelHeader,
  type QuantName,
  quants,
  readHeader,
  shardPaths,
  writeGguf,
  type WriteTensor,
  type WriteValue,
} from "../../engine/formats/index.ts";
import { writableMetadata } from "./quantize-metadata.ts";
import { chooseTypes, fileTypeId, parseFileType } from "./quantize-mix.ts";
import { QuantizePool } from "./quantize-pool.ts";
import type { Job } from "./quantize-worker.ts";

/** Weights per job: whole blocks of every type, and large compared with the overhead of a message. */
const CHUNK_WEIGHTS = 2 ** 18;
/** Jobs per thread: one in progress, and others so that no thread waits for the slowest. */
const JOBS_PER_THREAD = 4;
/** GGML_QNT_VERSION, ggml.h */
const QUANTIZATION_VERSION = 2;
/** Keys of the source that do not apply to the new file, which is unsplit and has the usual alignment. */
const DROPPED = ["split.no", "split.count", "split.tensors.count", "general.alignment"] as const;

export interface QuantizeOptions {
  /** The source: a GGUF of F32, F16 or BF16 weights, or the first part of a split one. */
  readonly from: string;
  /** Replaced atomically at the end. */
  readonly to: string;
  /** A file type such as `q4_K_M`, in any case. */
  readonly type: string;
  /** Default: one per core. */
  readonly threads?: number;
  /** Bytes of the source: done, and total. */
  readonly onProgress?: (done: { completed: number; total: number }) => void;
  readonly signal?: AbortSignal;
}

export interface Quantized {
  /** As in `Q4_K_M`. */
  readonly type: string;
  /** The block type of every tensor. */
  readonly tensorTypes: ReadonlyMap<string, QuantName>;
}

/**
 * Writes `from` to `to` in another type.
 * Throws `bad_request` for unknown types and sources that are quantized already, `not_found` and `bad_file` for
 * unreadable sources, and `cancelled`. On errors `to` is untouched.
 */
export async function quantizeFile(options: QuantizeOptions): Promise<Quantized> {
  const type = parseFileType(options.type);
  const model = await readHeader(options.from);
  await checkApart(options);
  const tensorTypes = chooseTypes(model, type);
  const metadata = await newMetadata(model, fileTypeId(type));
  const { threads: size = availableParallelism(), signal } = options;
  using pool = new QuantizePool({ size, signal, module: quantizeModule() });
  const jobs = jobsOf(model, tensorTypes);
  const chunks = inOrder(jobs.values(), pool);
  const total = jobs.reduce((sum, { byteLength }) => sum + byteLength, 0);
  let completed = 0;
  let next = 0;

  async function* dataOf(tensor: string): AsyncGenerator<Uint8Array, void, void> {
    for (; jobs[next]?.tensor === tensor; next++) {
      const { value } = await chunks.next();
      if (value === undefined) throw new Error(`invariant: no chunk for tensor '${tensor}'`);
      yield value;
      completed += jobs[next]!.byteLength;
      options.onProgress?.({ completed, total });
    }
  }

  const tensors = [...model.tensors.values()].map(({ name, shape, quant }): WriteTensor => ({
    name,
    shape,
    quant: quant === i32 ? i32 : quants[tensorTypes.get(name)!],
    data: dataOf(name),
  }));
  await writeGguf(options.to, { metadata, tensors });
  return { type, tensorTypes };
}

async function checkApart({ from, to }: QuantizeOptions): Promise<void> {
  const target = await realpath(to).catch(() => undefined); // it usually does not exist yet
  if (target !== undefined && target === (await realpath(from))) {
    throw new AppError("bad_request", `${to}: expected another file than the source, got the same`);
  }
  if (target !== undefined && (await stat(target)).isDirectory()) {
    throw new AppError("bad_request", `${to}: expected a file to write, got a folder`);
  }
}

async function newMetadata(model: ModelHeader, fileType: number): Promise<Record<string, WriteValue>> {
  const own = [...model.tensors.values()].filter(({ shard }) => shard === 0);
  const end = own.reduce((least, { offset }) => Math.min(least, offset), MAX_HEADER_BYTES);
  const header = await readStart(model.path, end);
  const metadata = writableMetadata(header, model.metadata, model.path);
  for (const key of DROPPED) delete metadata[key];
  metadata["general.quantization_version"] = { u32: QUANTIZATION_VERSION };
  metadata["general.file_type"] = { u32: fileType };
  return metadata;
}

/** The first bytes of a file, at most the whole file. */
async function readStart(path: string, byteLengthMax: number): Promise<Uint8Array> {
  await using file = await open(path, "r");
  const bytes = new Uint8Array(Math.min(byteLengthMax, (await file.stat()).size));
  let done = 0;
  for (let count = -1; count !== 0 && done < bytes.length; done += count) {
    count = (await file.read(bytes, done, bytes.length - done, done)).bytesRead;
  }
  return bytes.subarray(0, done); // a truncated header misses keys; the caller reports that
}

/** All ranges of all tensors, in file order. */
function jobsOf(model: ModelHeader, types: ReadonlyMap<string, QuantName>): Job[] {
  const paths = shardPaths(model.path, model.metadata);
  const jobs: Job[] = [];
  for (const tensor of model.tensors.values()) {
    const { blockLen, blockBytes, name } = tensor.quant;
    const chunkBytes = (CHUNK_WEIGHTS / blockLen) * blockBytes;
    for (let done = 0; done < tensor.byteLength; done += chunkBytes) {
      jobs.push({
        id: jobs.length,
        path: paths[tensor.shard]!, // a tensor's shard has a path
        offset: tensor.offset + done,
        byteLength: Math.min(chunkBytes, tensor.byteLength - done),
        from: tensor.quant === i32 ? "f32" : (name as QuantName), // quants are registered under their names
        to: types.get(tensor.name)!, // every tensor has one
        tensor: tensor.name,
      });
    }
  }
  return jobs;
}

/** Runs jobs with bounded concurrency and yields results in the order of the jobs. */
async function* inOrder(jobs: Iterable<Job>, pool: QuantizePool): AsyncGenerator<Uint8Array, void, void> {
  const waiting: Promise<Uint8Array>[] = [];
  for (const job of jobs) {
    const result = pool.run(job);
    result.catch(() => {}); // only its awaiter needs the error
    waiting.push(result);
    if (waiting.length >= pool.size * JOBS_PER_THREAD) yield await waiting.shift()!; // the queue is not empty
  }
  for (const result of waiting) yield await result;
}
