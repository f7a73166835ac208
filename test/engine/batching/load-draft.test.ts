/** A draft model on the SIMD kernels: the same answers in fewer steps, and answers without a usable draft. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Backend } from "../../../src/engine/program/backend.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { makeModel } from "../architectures/models.ts";
import { EMBEDDED, open } from "./embedded-engine.ts";
import { simdLevels } from "../backends/simd/levels.ts";

setDefaultTimeout(60_000);

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-draft-"))));
afterAll(() => rm(folder, { recursive: true }));

const [level] = simdLevels;

describe.skipIf(!level)("on the best level of this machine", () => {
  const { backend } = level ?? { backend: undefined as never };

  test("two streams give the same answers with a draft model, with sampling, a grammar and a stop string", async () => {
    const schema = { type: "object", properties: { name: { type: "string", maxLength: 30 } }, required: ["name"] };
    const got: string[][] = [];
    const steps: number[] = [];
    for (const draft of [EMBEDDED, undefined]) {
      const { ask, engine, info, runs } = await open(backend, draft, [20, 1]);
      expect(info.draftUnused).toBeUndefined();
      const first = await Promise.all([
        ask("Tell me a story about a fox.", {}),
        ask("What is the sea?", { temperature: 0.9, seed: 4 }),
      ]);
      const again = await Promise.all([
        ask("Tell me a story about a fox.", { temperature: 0.9, seed: 5, repeat_penalty: 1.2 }),
        ask("Say who you are.", {}, { format: schema }),
      ]);
      got.push([...first, ...again, await ask("Tell me a story about a fox.", { stop: [first[0]!.slice(30, 34)] })]);
      steps.push(runs[0]!);
      await engine.close();
    }
    expect(got[0]).toEqual(got[1]!);
    expect(got[0]!.every((text) => text.length > 5)).toBe(true);
    expect(steps[0]! * 2).toBeLessThan(steps[1]!);
  });

  test("a model with an unusable or missing draft model answers, and reports the reason", async () => {
    const other = join(folder, "other.gguf");
    await writeGguf(other, makeModel("llama"));
    for (const [path, reason] of [
      [other, /expected a (tokenizer|vocabulary) .* as the model has, got/],
      [join(folder, "none.gguf"), /none\.gguf/],
      [import.meta.path, /load-draft\.test\.ts/],
    ] as const) {
      const { ask, engine, info, runs } = await open(backend, path, [20, 1]);
      expect(info.draftUnused).toMatch(reason);
      expect((await ask("Tell me a story.", { num_predict: 4 })).length).toBeGreaterThan(0);
      expect(runs).toHaveLength(1);
      await engine.close();
    }
  });

  test("a backend without drafts does not load the draft model", async () => {
    const plain: Backend = {
      ...backend,
      load: async (program, options) => ({ ...(await backend.load(program, options)), verifies: false }),
    };
    const { engine, info, runs } = await open(plain, EMBEDDED, [20, 1]);
    expect(info.draftUnused).toContain("cannot be drafted on this backend");
    expect(runs).toHaveLength(1);
    await engine.close();
  });
});
