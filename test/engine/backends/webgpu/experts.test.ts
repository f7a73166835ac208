/** A mixture of experts whose experts are on the CPU, and everything else on a software adapter. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Dispatch } from "../../../../kernels/wgsl/dispatch.ts";
import { fuse } from "../../../../kernels/wgsl/fuse.ts";
import { lower } from "../../../../kernels/wgsl/lower.ts";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { expertSteps } from "../../../../src/engine/backends/experts.ts";
import { stopsOf } from "../../../../src/engine/backends/webgpu/stops.ts";
import type { Gguf } from "../../../../src/engine/formats/gguf/gguf.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import type { Program } from "../../../../src/engine/program/backend.ts";
import type { Step, Weight } from "../../../../src/engine/program/step.ts";
import { makeModel } from "../../architectures/models.ts";
import { withOwnInput, type Dividing } from "./dividing.ts";
import { swiftShaderEnv } from "./swiftshader.ts";

setDefaultTimeout(180_000);

const NMSE_MAX = 1e-5;

let folder = "";
let path = "";
let gguf: Gguf;
let program: Program;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "hearth-experts-"));
  path = join(folder, "experts.gguf");
  await writeGguf(path, makeModel("qwen2moe")); // two layers, each with a shared expert
  gguf = openGguf(path);
  program = loadProgram(gguf);
});
afterAll(async () => {
  gguf.close();
  await rm(folder, { recursive: true });
});

describe("a decode step with experts on the CPU", () => {
  const dispatchesOf = ({ steps, states, logits }: Program, hostSteps: Program["steps"]): Dispatch[] => {
    const piecesOf = ({ tensorRows, experts }: Weight) => [{ index: 0, first: 0, count: tensorRows * experts }];
    const lowered = lower(steps, { ctxLen: 64, isGemm: false, piecesOf, hostSteps: new Set(hostSteps) });
    return fuse(lowered, [states.name, logits!.name]);
  };
  const kernels = (list: readonly Dispatch[]): string[] => list.map(({ kernel }) => kernel);

  test("has no product of experts on the GPU, and runs the shared expert there meanwhile", () => {
    const experts = expertSteps(program);
    const list = dispatchesOf(program, experts);
    expect(kernels(list).filter((kernel) => kernel.startsWith("moe"))).toEqual([]);
    const stops = stopsOf(list, program.steps);
    expect(stops.map(({ step }) => step)).toEqual(experts);
    for (const { handed, returned, dim } of stops) {
      expect(kernels(list.slice(handed, returned))).toContain("gated_linear");
      expect(dim).toBe(program.shape.dim);
    }
    expect(list.length - dispatchesOf(program, []).length).toBeLessThanOrEqual(2 * experts.length);
  });

  test("sends rows of both inputs to the CPU if the router has an input of its own", () => {
    const own = withOwnInput(program);
    const stops = stopsOf(dispatchesOf(own, expertSteps(own)), own.steps);
    expect(stops.map(({ dim }) => dim)).toEqual([2 * own.shape.dim, 2 * own.shape.dim]);
  });

  test("sends the choice of experts to the CPU if an earlier step made it", () => {
    const chosen = { name: "chosen", dim: 2 };
    const values = new Float32Array(2 * program.shape.vocabSize);
    const all = program.steps.map((step): Step => (step.op === "moe" ? { ...step, chosen } : step));
    const own: Program = { ...program, steps: [{ op: "lookup", out: chosen, values }, ...all] };
    const list = dispatchesOf(own, expertSteps(own));
    const handing = list.filter(({ operands }) => operands.some(({ kind }) => kind === "handed"));
    const { dim } = own.shape;
    expect(handing.map(({ params }) => params)).toEqual([1, 2].map(() => ({ dim: dim + 2, first: dim, second: 2 })));
  });
});

test("experts on the CPU give the results of a whole model, and an error names its step on either side", async () => {
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/dividing.ts`, path], {
    env: { ...process.env, ...(await swiftShaderEnv()) },
    stderr: "inherit",
  });
  const { divided, faults } = JSON.parse(await child.stdout.text()) as Dividing;
  const names = divided.map(({ backend, gpuLayers }) => ({ backend, gpuLayers }));
  expect(names).toEqual([
    { backend: "webgpu+simd", gpuLayers: { count: 3, all: 3, cpuExperts: 1 } },
    { backend: "webgpu+simd", gpuLayers: { count: 3, all: 3, cpuExperts: 2 } },
  ]);
  expect(divided[0]!.device).toMatch(/^\S.*: all 3 layers, CPU .*: the experts of 1 layer$/);
  for (const { distance, keepsBits } of divided) {
    expect(distance).toBeLessThan(NMSE_MAX);
    expect(keepsBits).toBe(true);
  }
  for (const { parts } of divided) {
    expect(parts.keepBits).toBe(true);
    expect(parts.count).toBeGreaterThan(10);
  }
  expect(faults[0]).toMatch(/broken: moe with .*'blk\.0\.ffn_down_exps\.weight'.*: expected numbers, got NaN/);
  expect(faults[1]).toMatch(/broken: step \d+ \(add with 'blk\.1\.attn_output\.weight'\): expected numbers/);
});
