/** Single steps of a program that a GPU leaves to the CPU. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { expertSteps } from "../../../../src/engine/backends/experts.ts";
import type { Gguf } from "../../../../src/engine/formats/gguf/gguf.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import type { Program, StepSession } from "../../../../src/engine/program/backend.ts";
import { quantizedTo } from "../../architectures/adapters.ts";
import { makeModel } from "../../architectures/models.ts";
import { nmse } from "../compare.ts";
import { simdLevels } from "./levels.ts";

const options = { ctxLen: 64, slots: 2, precise: false, threads: 2, cacheDir: undefined };

let folder = "";
let gguf: Gguf;
let program: Program;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "hearth-steps-"));
  const model = makeModel("qwen3moe");
  const tensors = model.tensors.map((tensor) => (/_exps/.test(tensor.name) ? quantizedTo("q4_0", tensor) : tensor));
  await writeGguf(join(folder, "experts.gguf"), { ...model, tensors });
  gguf = openGguf(join(folder, "experts.gguf"));
  program = loadProgram(gguf);
});
afterAll(async () => {
  gguf.close();
  await rm(folder, { recursive: true });
});

const valuesOf = (rows: number): Float32Array =>
  Float32Array.from({ length: rows * program.shape.dim }, (_, i) => Math.sin(i * i + 1));

describe.each([...simdLevels])("$level", ({ backend }) => {
  const load = (): Promise<StepSession> => backend.loadSteps!(program, expertSteps(program), options);

  test("a drafted row has the same bits alone and beside others, and each step uses its own weights", async () => {
    const session = await load();
    const [first, second] = expertSteps(program);
    const { dim } = program.shape;
    const run = (step = first!, rows = 1, drafted = true): Float32Array<ArrayBuffer> =>
      Float32Array.from(session.run(step, { values: valuesOf(rows), drafted }));
    const alone = run();
    for (const rows of [2, 9, 40]) expect(run(first, rows).slice(0, dim)).toEqual(alone);
    expect(run(second)).not.toEqual(alone);
    expect(run(first, 600, false).length).toBe(600 * dim); // more than a pass takes
    session.close();
  });

  test("rows of a prompt take the kernels for prompts, whose bits differ", async () => {
    const session = await load();
    const [step] = expertSteps(program);
    const run = (drafted: boolean): Float32Array<ArrayBuffer> =>
      Float32Array.from(session.run(step!, { values: valuesOf(40), drafted }));
    const [one, other] = [run(true), run(false)];
    expect(other).not.toEqual(one);
    expect(nmse(other, one)).toBeLessThan(1e-3);
    session.close();
  });
});

test("steps that read rows of different lengths have the same bits in one session as alone", async () => {
  const [{ backend }] = simdLevels as [(typeof simdLevels)[number]];
  const [step] = expertSteps(program);
  const narrow = { op: "scale", x: { name: "narrow", dim: 3 }, by: 2 } as const;
  const [one, both] = [[step!], [step!, narrow]].map((steps) => backend.loadSteps!(program, steps, options));
  const [alone, session] = [await one!, await both!];
  const values = valuesOf(5);
  expect(await session.run(step!, { values, drafted: true })).toEqual(
    await alone.run(step!, { values, drafted: true }),
  );
  const short = Float32Array.of(1, 2, 3, 4, 5, 6);
  expect(await session.run(narrow, { values: short, drafted: true })).toEqual(short.map((value) => 2 * value));
  alone.close();
  session.close();
});
