/**
 * Quantizes a whole model, GGUF to GGUF: `quantize-mix.ts` says which tensor becomes what, threads convert ranges of
 * 256 thousand weights, and the writer gets them in the order of the file. What is in memory at a time does not depend
 * on the size of the model. As `llama-quantize` (llama-quant.cpp), without importance matrix.
 */
import { open, realpath } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { AppError } from "../base/index.ts";
import {
  MAX_HEADER_BYTES,
  type ModelHeader,
  type QuantName,
  quants,
  readHeader,
  shardPaths,
  writeGguf,
  type WriteTensor,
  type WriteValue,
} from "../engine/formats/index.ts";
import { writableMetadata } from "./quantize-metadata.ts";
import { chooseTypes, fileTypeId, parseFileType } from "./quantize-mix.ts";
import { QuantizePool } from "./quantize-pool.ts";
import type { Job } from "./quantize-worker.ts";

/** A range for one thread: whole blocks of every type, and large beside the cost of a message. */
const CHUNK_WEIGHTS = 2 ** 18;
/** Ranges on their way per thread: one in work, others so that no thread waits for the slowest. */
const JOBS_PER_THREAD = 4;
/** GGML_QNT_VERSION, ggml.h */
const QUANTIZATION_VERSION = 2;
/** Keys of the source that the new file has no use for: it is one file, aligned as most are. */
const DROPPED = ["split.no", "split.count", "split.tensors.count", "general.alignment"] as const;

export interface QuantizeOptions {
  /** The source: a GGUF of F32, F16 or BF16 weights; of a split one, the first part. */
  readonly from: string;
  /** Replaced as a whole once everything is written. */
  readonly to: string;
  /** A file type such as `q4_K_M`, in any case. */
  readonly type: string;
  /** One per core if absent. */
  readonly threads?: number;
  /** Bytes of the source that are done, of all. */
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
 * Writes `from` at `to` in another type.
 * Throws `bad_request` for types that there are not and sources that are quantized already, `not_found` and `bad_file`
 * for sources that cannot be read, and `cancelled`. `to` is untouched then.
 */
export async function quantizeFile(options: QuantizeOptions): Promise<Quantized> {
  const type = parseFileType(options.type);
  const model = await readHeader(options.from);
  await checkApart(options);
  const tensorTypes = chooseTypes(model, type);
  const metadata = await newMetadata(model, fileTypeId(type));
  using pool = new QuantizePool(options.threads ?? availableParallelism(), options.signal);
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

  const tensors = [...model.tensors.values()].map(({ name, shape }): WriteTensor => ({
    name,
    shape,
    quant: quants[tensorTypes.get(name)!],
    data: dataOf(name),
  }));
  await writeGguf(options.to, { metadata, tensors });
  return { type, tensorTypes };
}

async function checkApart({ from, to }: QuantizeOptions): Promise<void> {
  const target = await realpath(to).catch(() => undefined); // most often it is not there yet
  if (target !== undefined && target === (await realpath(from))) {
    throw new AppError("bad_request", `${to}: expected another file than the source, got the same`);
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

/** The first bytes of a file, at most all of it. */
async function readStart(path: string, byteLengthMax: number): Promise<Uint8Array> {
  await using file = await open(path, "r");
  const bytes = new Uint8Array(Math.min(byteLengthMax, (await file.stat()).size));
  let done = 0;
  for (let count = -1; count !== 0 && done < bytes.length; done += count) {
    count = (await file.read(bytes, done, bytes.length - done, done)).bytesRead;
  }
  return bytes.subarray(0, done); // one that became shorter lacks a key, and that is an error there
}

/** All ranges of all tensors, in the order in which they are written. */
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
        from: name as QuantName, // quants are registered under their names
        to: types.get(tensor.name)!, // every tensor has one
        tensor: tensor.name,
      });
    }
  }
  return jobs;
}

/** Runs jobs with a bounded number on their way, and gives results in the order of the jobs. */
async function* inOrder(jobs: Iterable<Job>, pool: QuantizePool): AsyncGenerator<Uint8Array, void, void> {
  const waiting: Promise<Uint8Array>[] = [];
  for (const job of jobs) {
    const result = pool.run(job);
    result.catch(() => {}); // only its awaiter needs the error
    waiting.push(result);
    if (waiting.length >= pool.size * JOBS_PER_THREAD) yield await waiting.shift()!; // it is not empty
  }
  for (const result of waiting) yield await result;
}
