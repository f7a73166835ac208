/** Models with recurrent states can draft too: wrong drafts are rolled back, and answers stay the same. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Rows } from "../../../src/engine/program/backend.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { makeModel, VOCAB } from "../architectures/models.ts";
import { simdLevels } from "../backends/simd/levels.ts";
import { answersOf, leaning, type Ask } from "./answers-of.ts";

setDefaultTimeout(60_000);

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-rollback-"))));
afterAll(() => rm(folder, { recursive: true }));

/** A text that repeats itself with occasional changes, so that drafts are made and some are wrong. */
const PROMPT = Array.from(
  { length: 60 },
  (_, i) => 5 + (((i % 12) * 7 + (i === 30 || i === 43 ? 1 : 0)) % (VOCAB - 8)),
);

describe.skipIf(simdLevels.length === 0)("on the best level of this machine", () => {
  const { backend } = simdLevels[0] ?? { backend: undefined as never };

  test.each(["qwen35", "mamba2", "nemotron_h"])(
    "%s: answers are the same with drafts, of which some are rolled back",
    async (name) => {
      const file = join(folder, `${name}.gguf`);
      await writeGguf(file, makeModel(name));
      const setup = { backend, file, change: leaning };
      const first: Ask[] = [
        { ids: PROMPT, options: { repeat_penalty: 1.2, repeat_last_n: 9 } },
        { ids: PROMPT.slice(7), options: { temperature: 0.9, seed: 3, top_k: 2 } },
      ];
      const plain = await answersOf({ ...setup, drafts: false }, [first]);
      const next = plain.said.map((ids) => ({ ids: [...ids, ...PROMPT.slice(3, 20)] })); // and the turns after them
      const asked = [
        first,
        next,
        [{ ids: PROMPT, options: { num_predict: 150, temperature: 1, seed: 9, top_k: 2 } }],
        next,
      ];
      const some = await answersOf({ ...setup, drafts: true }, asked);
      const none = await answersOf({ ...setup, drafts: false }, asked);
      expect(some.said).toEqual(none.said);
      const guessed = some.batches.filter((batch) => batch.some(({ drafted }) => drafted));
      const runs = guessed.flatMap((batch) => batch.map(({ slot, start }) => ({ slot, start })));
      const takenBack = runs.filter(({ slot, start }, i) => {
        return runs.slice(0, i).findLast((before) => before.slot === slot)?.start === start;
      });
      expect(guessed.length).toBeGreaterThan(3);
      expect(takenBack.length).toBeGreaterThan(0);
      expect(some.batches.length).toBeLessThan(none.batches.length);
    },
  );

  test("after failed steps with drafts of one sequence, two sequences answer the same as without drafts", async () => {
    const file = join(folder, "qwen35-fails.gguf");
    await writeGguf(file, makeModel("qwen35"));
    let failed = 0;
    const first = (slot: number): boolean => slot === 0;
    const failing = (logits: Float32Array, batch: readonly Rows[]): Float32Array => {
      const isMixed = batch.some(({ drafted }) => drafted) && batch.some(({ drafted }) => !drafted);
      if (isMixed && failed < 3 && ++failed) throw new Error("a step that fails when its states went on");
      return leaning(logits, batch, first);
    };
    const random = Array.from({ length: 40 }, (_, i) => 5 + ((i * i * 31) % (VOCAB - 8)));
    const asked = [[{ ids: PROMPT }, { ids: random, options: { temperature: 1, seed: 5, num_predict: 90 } }]];
    const change = (logits: Float32Array, batch: readonly Rows[]): Float32Array => leaning(logits, batch, first);
    const plain = await answersOf({ backend, file, drafts: false, change }, asked);
    const mended = await answersOf({ backend, file, drafts: true, change: failing }, asked);
    expect(failed).toBeGreaterThan(1);
    expect(mended.said).toEqual(plain.said);
    expect(mended.batches.flat().filter(({ start }) => start === 0)).toHaveLength(2 + failed);
  });
});
