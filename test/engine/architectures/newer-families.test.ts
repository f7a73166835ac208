/** Proof that llama.cpp's logits of these models reveal what their families have: each mistake must show. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import type { Program } from "../../../src/engine/program/backend.ts";
import type { Step } from "../../../src/engine/program/step.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { nmse } from "../backends/compare.ts";
import { CTX_LEN, makeModel, TOKENS } from "./models.ts";
import { MUTATIONS } from "./mutations.ts";
import { newerFamilies } from "./newer-families.ts";

const NMSE_MAX = 1e-5;

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-newer-"))));
afterAll(() => rm(folder, { recursive: true }));

async function logitsOf(program: Program): Promise<Float32Array> {
  const options = { ctxLen: CTX_LEN, slots: 1, precise: true, threads: 1, cacheDir: undefined };
  const session = await cpuBackend.load(program, options);
  const logits = (await session.run([{ slot: 0, start: 0, tokens: TOKENS, logits: "all" }])).slice();
  session.close();
  return logits;
}

const without = ({ steps, ...program }: Program, isLost: (step: Step) => boolean): Program | undefined =>
  steps.some(isLost) ? { ...program, steps: steps.filter((step) => !isLost(step)) } : undefined;

const OWN: readonly { readonly name: string; readonly apply: (program: Program) => Program | undefined }[] = [
  {
    name: "gates of heads lost",
    apply: (program) => without(program, (step) => step.op === "multiply" && step.act === "sigmoid"),
  },
  { name: "exponential part lost", apply: (program) => without(program, ({ op }) => op === "activate") },
  {
    name: "limits lost",
    apply({ steps, ...program }) {
      if (!steps.some((step) => "limit" in step)) return undefined;
      const unlimited = steps.map((step) => {
        if (!("limit" in step)) return step;
        const { limit: _, ...rest } = step;
        return rest as Step; // the same kind, whose limit is optional
      });
      return { ...program, steps: unlimited };
    },
  },
];

for (const name of Object.keys(newerFamilies)) {
  test(`${name}: every mistake shows in llama.cpp's logits`, async () => {
    const path = join(folder, `${name}.gguf`);
    await writeGguf(path, makeModel(name));
    const expected = new Float32Array(await Bun.file(join(import.meta.dir, "logits", `${name}.f32`)).arrayBuffer());
    const gguf = openGguf(path);
    const program = loadProgram(gguf);
    const errorOf = async (each: Program): Promise<number> =>
      nmse((await logitsOf(each)).slice(-expected.length), expected);
    expect(await errorOf(program)).toBeLessThan(NMSE_MAX);
    let made = 0;
    for (const mutation of [...MUTATIONS, ...OWN]) {
      const wrong = mutation.apply(program);
      if (!wrong) continue;
      made++;
      expect([mutation.name, (await errorOf(wrong)) > NMSE_MAX]).toEqual([mutation.name, true]);
    }
    expect(made).toBeGreaterThan(1);
    gguf.close();
  });
}
