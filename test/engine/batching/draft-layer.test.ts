/** Models with a draft layer in their file: the same answers, in fewer steps if it drafts well. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeGguf, type WriteModel, type WriteTensor } from "../../../src/engine/formats/files/write.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import { draftNames, makeDraftModel } from "../architectures/draft-layers.ts";
import { makeModel, VOCAB } from "../architectures/models.ts";
import { simdLevels } from "../backends/simd/levels.ts";
import { golden, goldenTest } from "../../golden.ts";
import { answersOf, type Ask } from "./answers-of.ts";

setDefaultTimeout(60_000);

const REAL = ["real/qwen35_llama.cpp_MTP_blk.N.nextn_", "real/qwen35moe_qwen3.6_35b_a3b_", "twins/qwen35.ollama"];
const DIM = 64;

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-draft-layer-"))));
afterAll(() => rm(folder, { recursive: true }));

const PROMPT = Array.from({ length: 30 }, (_, i) => 5 + ((i * 23) % (VOCAB - 8)));
const ASKED: readonly (readonly Ask[])[] = [
  [{ ids: PROMPT }, { ids: PROMPT.slice(4), options: { temperature: 0.9, seed: 3 } }],
  [{ ids: PROMPT.slice(9), options: { temperature: 1.5, seed: 4, top_k: 0, top_p: 1, num_predict: 120 } }],
];

/**
 * A model whose next token depends only on the last one, with a draft layer that gives the same for its input token:
 * only the embedding has an effect.
 */
function markov(): WriteModel {
  const { metadata, tensors } = makeModel("qwen35");
  const layers = Math.max(...tensors.map(({ name }) => Number(/^blk\.(\d+)/.exec(name)?.[1] ?? 0))) + 1;
  const floats = (name: string, shape: readonly number[], value: (i: number) => number): WriteTensor => {
    const values = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => value(i));
    return { name, shape, quant: quants.f32, data: new Uint8Array(values.buffer) };
  };
  const ones = (name: string): WriteTensor => floats(name, [DIM], () => 1);
  const silent = /attn_output|ssm_out|ffn_down/;
  const hushed = tensors.map((each) => (silent.test(each.name) ? floats(each.name, each.shape, () => 0) : each));
  const last = `blk.${layers}`;
  const attention = hushed.filter(({ name }) => name.startsWith(`blk.${layers - 1}.`));
  const own = attention.map((each) => ({ ...each, name: each.name.replace(`blk.${layers - 1}.`, `${last}.`) }));
  const drafts = [
    ones(`${last}.nextn.enorm.weight`),
    ones(`${last}.nextn.hnorm.weight`),
    floats(`${last}.nextn.eh_proj.weight`, [2 * DIM, DIM], (i) => Number(i % (2 * DIM) === Math.floor(i / (2 * DIM)))),
  ];
  const keys = { "qwen35.block_count": { u32: layers + 1 }, "qwen35.nextn_predict_layers": { u32: 1 } };
  return { metadata: { ...metadata, ...keys }, tensors: [...hushed, ...own, ...drafts] };
}

describe.skipIf(simdLevels.length === 0)("on the best level of this machine", () => {
  const { backend } = simdLevels[0] ?? { backend: undefined as never };

  goldenTest.each(REAL)("%s: the same answers, at temperature 0 and above", async (name) => {
    const setup = { backend, file: golden(`${name}.gguf`) };
    const some = await answersOf({ ...setup, drafts: true }, ASKED);
    const none = await answersOf({ ...setup, drafts: false }, ASKED);
    expect(some.said).toEqual(none.said);
    expect(some.batches.some((batch) => batch.some(({ drafted }) => drafted))).toBe(true);
  });

  test.each(draftNames)("%s: the same answers with a layer that drafts as without", async (name) => {
    const file = join(folder, `${name}.gguf`);
    await writeGguf(file, makeDraftModel(name));
    const some = await answersOf({ backend, file, drafts: true }, ASKED);
    const none = await answersOf({ backend, file, drafts: false }, ASKED);
    expect(some.said).toEqual(none.said);
    expect(some.batches.some((batch) => batch.some(({ drafted }) => drafted))).toBe(true);
  });

  test("a layer that drafts well saves most of the steps, of texts that nothing repeats", async () => {
    const file = join(folder, "markov.gguf");
    await writeGguf(file, markov());
    const some = await answersOf({ backend, file, drafts: true }, ASKED);
    const none = await answersOf({ backend, file, drafts: false }, ASKED);
    expect(some.said).toEqual(none.said);
    expect(some.batches.length).toBeLessThan(0.4 * none.batches.length);
  });
});
