/** Layers that draft against llama.cpp, on the reference kernels. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadDraftLayer, loadProgram } from "../../../src/engine/architectures/index.ts";
import type { Program, Session } from "../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { nmse } from "../backends/compare.ts";
import { draftNames, makeDraftModel } from "./draft-layers.ts";
import { CTX_LEN, makeModel, TOKENS } from "./models.ts";

const NMSE_MAX = 1e-5;

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-draft-layer-"))));
afterAll(() => rm(folder, { recursive: true }));

function load(program: Program): Promise<Session> {
  return cpuBackend.load(program, { ctxLen: CTX_LEN, slots: 1, precise: true, threads: 1, cacheDir: undefined });
}

test.each(draftNames)("%s: the draft layer has llama.cpp's logits", async (name) => {
  const file = join(folder, `${name}.gguf`);
  await writeGguf(file, makeDraftModel(name));
  const gguf = openGguf(file);
  try {
    const [whole, drafter] = [await load(loadProgram(gguf)), await load(loadDraftLayer(gguf)!)];
    const states = await whole.states([{ slot: 0, start: 0, tokens: TOKENS, states: "all" }]);
    const tokens = TOKENS.subarray(1);
    const positions = tokens.map((_, i) => i + 1);
    const input = states.slice(0, (states.length / TOKENS.length) * tokens.length);
    const said = await drafter.run([{ slot: 0, start: 0, tokens, positions, input, logits: "all" }]);
    const recorded = await Bun.file(join(import.meta.dir, "logits", `${name}+draft.f32`)).arrayBuffer();
    expect(nmse(said, new Float32Array(recorded))).toBeLessThan(NMSE_MAX);
  } finally {
    gguf.close();
  }
});

test.each(draftNames)("%s: a file with no draft layer, or with two, gives none", async (name) => {
  const file = join(folder, `${name}-none.gguf`);
  await writeGguf(file, makeModel(name));
  expect(loadDraftLayer(openGguf(file))).toBeUndefined();
  const { metadata, tensors } = makeDraftModel(name);
  const layers = (metadata[`${name}.block_count`] as { u32: number }).u32; // as it was made
  const keys = { [`${name}.block_count`]: { u32: layers + 1 }, [`${name}.nextn_predict_layers`]: { u32: 2 } };
  const another = tensors
    .filter((each) => each.name.startsWith(`blk.${layers - 1}.`))
    .map((each) => ({ ...each, name: each.name.replace(`blk.${layers - 1}.`, `blk.${layers}.`) }));
  await writeGguf(file, { metadata: { ...metadata, ...keys }, tensors: [...tensors, ...another] });
  expect(loadDraftLayer(openGguf(file))).toBeUndefined();
});
