/**
 * Hearth's side of a comparison of logits. A side is a backend, `simd` with a level after a colon, with `+precise` for
 * float32 activations, `+q8_0` or `+q4_0` for that cache: `simd:avx2+precise`.
 */
import { loadProgram } from "../../src/engine/architectures/index.ts";
import { makeSimdBackend } from "../../src/engine/backends/host/simd.ts";
import { wasmBackend } from "../../src/engine/backends/host/wasm.ts";
import { webGpuBackend } from "../../src/engine/backends/host/webgpu.ts";
import { onnxBackend } from "../../src/engine/backends/onnx/index.ts";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import type { Backend, Session } from "../../src/engine/program/backend.ts";
import { swiftShaderEnv } from "../../test/engine/backends/webgpu/swiftshader.ts";

const BACKENDS: Readonly<Record<string, Backend>> = {
  simd: makeSimdBackend(),
  wasm: wasmBackend,
  onnx: onnxBackend,
  webgpu: webGpuBackend,
};
/** Tokens of one run: the logits of a large vocabulary are a megabyte each. */
const CHUNK = 128;
/** Logarithm below which probabilities change no sum. */
const LEAST = -40;

/** Environment variables with which a process of these sides is started. */
export async function envOf(sides: string): Promise<Record<string, string | undefined>> {
  const gpu = sides.includes("webgpu") ? await swiftShaderEnv() : {};
  return { ...process.env, ORT_DISABLE_TELEMETRY: "1", ...gpu };
}

export interface Side {
  /** Calls `each` with the logits of each position of a sequence from `first` on, some at a time, in order. */
  logits(ids: Int32Array, each: (rows: Float32Array) => void | Promise<void>, first?: number): Promise<void>;
  readonly vocabSize: number;
  close(): void;
}

/** Loads a model for sequences of up to `ctxLen` tokens. */
export async function openSide(path: string, side: string, { ctxLen, threads = 2 }: SideOptions): Promise<Side> {
  const [name, ...more] = side.split("+");
  const [backend, level] = name!.split(":");
  const gguf = openGguf(path);
  const program = loadProgram(gguf);
  const session: Session = await BACKENDS[backend!]!.load(program, {
    ctxLen,
    slots: 1,
    precise: more.includes("precise"),
    kvType: (["q8_0", "q4_0"] as const).find((type) => more.includes(type)),
    threads,
    cacheDir: undefined,
    ...(level === undefined ? {} : { simdLevel: level }),
  });
  return {
    vocabSize: program.shape.vocabSize,
    async logits(ids, each, first = 0) {
      for (let start = 0; start < ids.length;) {
        const end = start < first ? Math.min(start + 4 * CHUNK, first) : start + CHUNK;
        const tokens = ids.subarray(start, end);
        const logits = await session.run([{ slot: 0, start, tokens, logits: start < first ? "none" : "all" }]);
        if (start >= first) await each(logits);
        start = end;
      }
    },
    close() {
      session.close();
      gguf.close();
    },
  };
}

/** ln Σ e^logit of a row; minus the logit of a token, it is −ln p of that token. */
export function logSum(row: Float32Array): number {
  let max = -Infinity;
  for (const value of row) if (value > max) max = value;
  let sum = 0;
  for (const value of row) if (value - max > LEAST) sum += Math.exp(value - max);
  return Math.log(sum) + max;
}

/** −ln p of the tokens of a text after position `first`. */
export async function lossesOf({ logits, vocabSize }: Side, ids: Int32Array, first = 0): Promise<Float32Array> {
  const losses = new Float32Array(ids.length - 1 - first);
  let at = 0;
  const each = (rows: Float32Array): void => {
    for (let start = 0; start < rows.length && at < losses.length; start += vocabSize, at++) {
      const row = rows.subarray(start, start + vocabSize);
      losses[at] = logSum(row) - row[ids[first + at + 1]!]!;
    }
  };
  await logits(ids, each, first);
  return losses;
}

interface SideOptions {
  readonly ctxLen: number;
  readonly threads?: number;
}
