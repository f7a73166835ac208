/** Models with a draft layer in their file: the same answers, in fewer steps if it drafts well. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { draftNames, makeDraftModel, makeMarkov } from "../architectures/draft-layers.ts";
import { VOCAB } from "../architectures/models.ts";
import { simdLevels } from "../backends/simd/levels.ts";
import { golden, goldenTest } from "../../golden.ts";
import { answersOf, type Ask } from "./answers-of.ts";

setDefaultTimeout(60_000);

const REAL = ["real/qwen35_llama.cpp_MTP_blk.N.nextn_", "real/qwen35moe_qwen3.6_35b_a3b_", "twins/qwen35.ollama"];

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-draft-layer-"))));
afterAll(() => rm(folder, { recursive: true }));

const PROMPT = Array.from({ length: 30 }, (_, i) => 5 + ((i * 23) % (VOCAB - 8)));
const ASKED: readonly (readonly Ask[])[] = [
  [{ ids: PROMPT }, { ids: PROMPT.slice(4), options: { temperature: 0.9, seed: 3 } }],
  [{ ids: PROMPT.slice(9), options: { temperature: 1.5, seed: 4, top_k: 0, top_p: 1, num_predict: 120 } }],
];

describe.skipIf(simdLevels.length === 0)("on the best level of this machine", () => {
  const { backend } = simdLevels[0] ?? { backend: undefined as never };

  goldenTest.each(REAL)("%s: answers are the same with its draft layer, at temperature 0 and above", async (name) => {
    const setup = { backend, file: golden(`${name}.gguf`) };
    const some = await answersOf({ ...setup, drafts: true }, ASKED);
    const none = await answersOf({ ...setup, drafts: false }, ASKED);
    expect(some.said).toEqual(none.said);
    expect(some.batches.some((batch) => batch.some(({ drafted }) => drafted))).toBe(true);
  });

  test.each(draftNames)("%s: answers are the same with its draft layer as without", async (name) => {
    const file = join(folder, `${name}.gguf`);
    await writeGguf(file, makeDraftModel(name));
    const some = await answersOf({ backend, file, drafts: true }, ASKED);
    const none = await answersOf({ backend, file, drafts: false }, ASKED);
    expect(some.said).toEqual(none.said);
    expect(some.batches.some((batch) => batch.some(({ drafted }) => drafted))).toBe(true);
  });

  test("a draft layer that drafts well saves most of the steps of texts without repetition", async () => {
    const file = join(folder, "markov.gguf");
    await writeGguf(file, makeMarkov());
    const some = await answersOf({ backend, file, drafts: true }, ASKED);
    const none = await answersOf({ backend, file, drafts: false }, ASKED);
    expect(some.said).toEqual(none.said);
    expect(some.batches.length).toBeLessThan(0.4 * none.batches.length);
  });
});
