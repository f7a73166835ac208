/**
 * A model's matrix products, norms and activations, without its attention, on our kernels and on ONNX Runtime's WebGPU
 * provider: one program, lowered twice. Reports the difference of their logits, and the speed of each.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lower } from "../kernels/onnx/lower.ts";
import { makeHalfTable } from "../kernels/onnx/weights.ts";
import { loadProgram } from "../src/engine/architectures/index.ts";
import type { Program } from "../src/engine/program/backend.ts";
import { createWeightFile } from "../src/engine/backends/onnx/weight-file.ts";
import { statesEnd } from "../src/engine/program/states.ts";
import type { Step } from "../src/engine/program/step.ts";
import { webGpuBackend } from "../src/engine/backends/host/webgpu.ts";
import { gaussian } from "../test/conformance/weights.ts";
import { makeRng } from "../src/engine/text/rng.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";

const WEIGHTS_NAME = "model.weights";

export interface Products {
  /** Σ (onnx − hearth)² / Σ hearth² of the last row's logits for few and for all rows, both in float32. */
  readonly nmse: number;
  readonly hearth: Speed;
  readonly onnx: Speed;
}

/** Milliseconds of a run. */
interface Speed {
  readonly oneRowMs: number;
  readonly allRowsMs: number;
}

/** @param rows of the larger run */
export async function measureProducts(
  file: string,
  { rows, repeats }: { rows: number; repeats: number },
): Promise<Products> {
  using gguf = closing(openGguf(file));
  const program = withoutAttention(loadProgram(gguf.value));
  const rng = makeRng(7);
  const input = Float32Array.from({ length: rows * program.shape.dim }, () => gaussian(rng));
  const few = input.subarray(0, Math.min(4, rows) * program.shape.dim);
  const logits: Float32Array[] = [];
  const speeds: Speed[] = [];
  for (const open of [openHearth, openOnnx]) {
    const exact = await open(program, { precise: true, rows });
    logits.push(Float32Array.of(...(await exact.run(few)), ...(await exact.run(input)))); // few rows, then many
    exact.close();
    const fast = await open(program, { precise: false, rows });
    speeds.push({
      oneRowMs: await medianMs(repeats, () => fast.run(input.subarray(0, program.shape.dim))),
      allRowsMs: await medianMs(Math.min(3, repeats), () => fast.run(input)),
    });
    fast.close();
  }
  return { nmse: nmse(logits[1]!, logits[0]!), hearth: speeds[0]!, onnx: speeds[1]! };
}

/** The program on given hidden states, with attention's output replaced by its queries. Logits of the last row only. */
export function withoutAttention({ steps, shape, ...program }: Program): Program {
  const renamed = new Map<string, string>();
  const kept = steps.flatMap((step): Step[] => {
    if (step.op === "embed") return [{ op: "input", out: step.out }];
    if (step.op === "rope" || step.op === "positionScale") return [];
    if (step.op !== "attention") return [step];
    renamed.set(step.out.name, step.q.name);
    return [];
  });
  const read = (step: Step): Step =>
    "x" in step && renamed.has(step.x.name) ? { ...step, x: { ...step.x, name: renamed.get(step.x.name)! } } : step;
  return { ...program, shape, steps: kept.map(read) };
}

interface Runner {
  /**
   * Logits of the last row.
   * @param input (rows, dim)
   */
  run(input: Float32Array): Promise<Float32Array>;
  close(): void;
}

interface RunnerOptions {
  readonly precise: boolean;
  readonly rows: number;
}

async function openHearth(program: Program, { precise, rows }: RunnerOptions): Promise<Runner> {
  const session = await webGpuBackend.load(program, {
    ctxLen: Math.max(16, rows),
    slots: 1,
    precise,
    threads: 0,
    cacheDir: undefined,
  });
  const run = (input: Float32Array) =>
    session.run([
      { slot: 0, start: 0, tokens: new Int32Array(input.length / program.shape.dim), input, logits: "last" },
    ]);
  return { run, close: () => session.close() };
}

async function openOnnx(program: Program, { precise }: RunnerOptions): Promise<Runner> {
  const { InferenceSession, Tensor } = await import("onnxruntime-node");
  const folder = mkdtempSync(join(tmpdir(), "hearth-bench-onnx-"));
  try {
    const path = join(folder, "model.onnx");
    const file = createWeightFile(join(folder, WEIGHTS_NAME), WEIGHTS_NAME);
    const options = {
      file,
      precise,
      half: makeHalfTable(),
      packed: () => {},
      statesEnd: statesEnd(program),
      encoder: false,
    };
    writeFileSync(path, lower(program, options).model());
    file.close();
    const session = await InferenceSession.create(path, {
      executionProviders: ["webgpu"],
      logSeverityLevel: 3,
      extra: { session: { disable_cpu_ep_fallback: "1" } },
    });
    const { dim } = program.shape;
    const int64 = (value: number) => new Tensor("int64", BigInt64Array.of(BigInt(value)), [1]);
    return {
      async run(input) {
        const rows = input.length / dim;
        const feeds = {
          embeds: new Tensor("float32", input, [1, rows, dim]),
          rows: int64(rows - 1),
          head_rows: int64(0),
        };
        const { logits } = await session.run(feeds, ["logits"]);
        return logits!.data as Float32Array; // its type, by the graph
      },
      close: () => void session.release(),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function closing<T extends { close(): void }>(value: T): Disposable & { value: T } {
  return { value, [Symbol.dispose]: () => value.close() };
}

function nmse(got: Float32Array, expected: Float32Array): number {
  if (got.length !== expected.length) throw new Error(`${got.length} logits, expected ${expected.length}`);
  let [error, power] = [0, 0];
  for (const [i, value] of expected.entries()) {
    error += (got[i]! - value) ** 2;
    power += value ** 2;
  }
  return error / power;
}

async function medianMs(repeats: number, run: () => Promise<unknown>): Promise<number> {
  await run();
  const ms: number[] = [];
  for (let i = 0; i < repeats; i++) {
    const startedMs = performance.now();
    await run();
    ms.push(performance.now() - startedMs);
  }
  return ms.toSorted((a, b) => a - b)[Math.floor(ms.length / 2)]!;
}
