/**
 * A quantizer thread: reads a range of a tensor, converts its blocks and returns them. Keeps files open and buffers
 * between jobs; terminating the thread releases them. Entry point, started by `quantize.ts`. Files are not mapped:
 * truncating a mapped source would kill the process instead of causing an error.
 */
import { openSync, readSync } from "node:fs";
import { AppError, type Code, messageOf } from "../../base/index.ts";
import { QuantizeKernel, type QuantName, quants } from "../../engine/formats/index.ts";

/** The first message. */
export interface Begin {
  /** Absent: the quantizers of this program's own code do the work. */
  readonly module: WebAssembly.Module | undefined;
}

/** Whole blocks of one tensor. */
export interface Job {
  readonly id: number;
  readonly path: string;
  /** In the file, in bytes. */
  readonly offset: number;
  readonly byteLength: number;
  readonly from: QuantName;
  readonly to: QuantName;
  /** For messages. */
  readonly tensor: string;
}

export type Reply =
  | { readonly id: number; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly id: number; readonly problem: string; readonly code: Code | undefined };

/** The part of a worker's global object that we use. */
interface Thread {
  onmessage: ((event: { data: Begin | Job }) => void) | null;
  postMessage(reply: Reply, transfer?: ArrayBuffer[]): void;
}

/** Converts jobs; throws an `AppError` for a problem of the file. */
function makeConverter(module: WebAssembly.Module | undefined): (job: Job) => Uint8Array<ArrayBuffer> {
  const files = new Map<string, number>();
  const kernel = module && new QuantizeKernel(module);
  const convert = makePlainConverter();
  return (job) => {
    const file = files.get(job.path) ?? openSync(job.path, "r");
    files.set(job.path, file);
    if (job.from === job.to) return readRange(file, job, new Uint8Array(job.byteLength));
    if (!kernel?.has(job.from, job.to)) return convert(file, job);
    const blocks = kernel.quantize(job, (bytes) => readRange(file, job, bytes));
    return typeof blocks === "number" ? convert(file, job) : blocks; // it throws: a weight is not finite
  };
}

/** A converter without the kernel: slower, with the same bytes. */
function makePlainConverter(): (file: number, job: Job) => Uint8Array<ArrayBuffer> {
  let source = new Uint8Array(0);
  let weights = new Float32Array(0);
  return (file, job) => {
    const from = quants[job.from];
    const to = quants[job.to];
    if (source.length < job.byteLength) source = new Uint8Array(job.byteLength);
    readRange(file, job, source);
    const count = (job.byteLength / from.blockBytes) * from.blockLen;
    if (weights.length < count) weights = new Float32Array(count);
    const part = weights.subarray(0, count);
    from.dequantize(source, part);
    checkFinite(part, job);
    const out = new Uint8Array((count / to.blockLen) * to.blockBytes);
    if (!("quantize" in to) || !to.quantize) throw new Error(`invariant: ${job.to} has no quantizer`);
    to.quantize(part, out);
    return out;
  };
}

/** Fills the start of `bytes`, and returns it. */
function readRange<T extends Uint8Array>(file: number, { path, offset, byteLength, tensor }: Job, bytes: T): T {
  for (let done = 0; done < byteLength;) {
    const count = readSync(file, bytes, done, byteLength - done, offset + done);
    if (count === 0) {
      const found = `an end at ${offset + done}`;
      throw new AppError(
        "bad_file",
        `${path}: tensor '${tensor}': expected bytes to ${offset + byteLength}, got ${found}`,
      );
    }
    done += count;
  }
  return bytes;
}

/** A scale search over NaN or infinity fails, and one such weight would spoil its whole block. */
function checkFinite(weights: Float32Array, { path, tensor }: Job): void {
  let at = 0;
  while (at < weights.length && Math.abs(weights[at]!) < Infinity) at++;
  if (at === weights.length) return;
  throw new AppError("bad_file", `${path}: tensor '${tensor}': expected finite weights, got ${weights[at]}`);
}

if (!Bun.isMainThread) {
  const thread = globalThis as unknown as Thread; // a worker's global object has these
  let convert = makeConverter(undefined);
  thread.onmessage = ({ data }) => {
    if ("module" in data) {
      convert = makeConverter(data.module);
      return;
    }
    const { id } = data;
    try {
      const bytes = convert(data);
      thread.postMessage({ id, bytes }, [bytes.buffer]);
    } catch (error) {
      const code = error instanceof AppError ? error.code : undefined;
      thread.postMessage({ id, problem: messageOf(error), code });
    }
  };
}
