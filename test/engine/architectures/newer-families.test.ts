/** Proof that llama.cpp's logits of these models reveal what their families have: each mistake must show. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../../../src/base/index.ts";
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
  {
    name: "weights of streams lost",
    apply: (program) =>
      without(program, (step) => step.op === "multiply" && step.out.name === step.a.name && step.act === undefined),
  },
  { name: "least weights of streams lost", apply: (program) => without(program, ({ op }) => op === "clamp") },
  {
    name: "sinks lost",
    apply({ steps, ...program }) {
      if (!steps.some((step) => "sinks" in step)) return undefined;
      const bare = steps.map((step) => {
        if (step.op !== "latentAttention") return step;
        const { sinks: _, ...rest } = step;
        return rest;
      });
      return { ...program, steps: bare };
    },
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

test("a first layer without an indexer is refused, and too many streams are", async () => {
  const path = join(folder, "refused.gguf");
  const made = makeModel("hy_v4");
  const open = async (change: Partial<typeof made>): Promise<string> => {
    await writeGguf(path, { ...made, ...change });
    const gguf = openGguf(path);
    try {
      loadProgram(gguf);
      return "loaded";
    } catch (error) {
      return messageOf(error);
    } finally {
      gguf.close();
    }
  };
  const types = { "hy_v4.attention.indexer.types": [false, false, true] };
  expect(await open({ metadata: { ...made.metadata, ...types } })).toContain("layer 0: expected an indexer, got none");
  const streams = { "hy_v4.hyper_connection.count": { u32: 65 } };
  expect(await open({ metadata: { ...made.metadata, ...streams } })).toContain("expected a whole number of 2 … 64");
});

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
