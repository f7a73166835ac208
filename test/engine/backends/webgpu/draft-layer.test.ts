/** Draft layers of a model's own file on the GPU: the same answers in fewer steps, and no second copy of weights. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadDraftLayer, loadProgram } from "../../../../src/engine/architectures/index.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel } from "../../../../src/engine/formats/files/write.ts";
import type { Backend } from "../../../../src/engine/program/backend.ts";
import { makeDraftModel, makeMarkov } from "../../architectures/draft-layers.ts";
import { VOCAB } from "../../architectures/models.ts";
import { drawn } from "../../../seed.ts";
import { answersOf, type Ask } from "../../batching/answers-of.ts";
import type { BackendChild } from "../child.ts";
import { sharedWebGpu } from "./shared.ts";

setDefaultTimeout(180_000);

let gpu: BackendChild;
let folder = "";
beforeAll(async () => {
  gpu = await sharedWebGpu();
  folder = await mkdtemp(join(tmpdir(), "hearth-webgpu-draft-layer-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function fileOf(name: string, model: WriteModel): Promise<string> {
  const file = join(folder, `${name}.gguf`);
  await writeGguf(file, model);
  return file;
}

const PROMPT = Array.from({ length: 20 }, (_, i) => 5 + ((i * 23) % (VOCAB - 8)));
const options = { num_predict: 24 };
const ASKED: readonly (readonly Ask[])[] = [
  [
    { ids: PROMPT, options },
    { ids: PROMPT.slice(4), options: { ...options, temperature: 0.9, seed: 3 } },
  ],
];

/** A run draws one of them by its seed. */
const DRAFTING = [
  ["recurrent layers, a layer that drafts well", makeMarkov, 12],
  ["experts, a layer with a head of its own", () => makeDraftModel("glm4moe"), 30],
] as const;

test.each(drawn("a layer that drafts", DRAFTING, 1))(
  "%s: answers are the same with drafts as without, in fewer steps",
  async (name, make, most) => {
    const backend: Backend = {
      name: "webgpu",
      load(program, { ctxLen, slots, threads, precise, beside }) {
        const own = { ctxLen, slots, threads, precise, beside, cacheDir: undefined }; // can be sent
        return gpu.backend.load(program, own);
      },
    };
    const setup = { backend, file: await fileOf(name, make()) };
    const some = await answersOf({ ...setup, drafts: true }, ASKED);
    const none = await answersOf({ ...setup, drafts: false }, ASKED);
    expect(some.said).toEqual(none.said);
    expect(some.batches.some((batch) => batch.some(({ drafted }) => drafted))).toBe(true);
    expect(some.batches.length).toBeLessThan(most); // each answer has 24 tokens
  },
);

test("a draft layer uses the embedding and the head of its model on the device", async () => {
  const gguf = openGguf(await fileOf("shares", makeDraftModel("qwen35")));
  const [program, layer] = [loadProgram(gguf), loadDraftLayer(gguf)!];
  const load = { ctxLen: 64, slots: 1, precise: true, threads: 1, cacheDir: undefined };
  const session = await gpu.backend.load(program, load);
  const [apart, beside] = [
    await gpu.backend.load(layer, load),
    await gpu.backend.load(layer, { ...load, beside: session.held }),
  ];
  const { byteLength } = gguf.tensors.get("token_embd.weight")!;
  expect(apart.bytes.weights - beside.bytes.weights).toBeGreaterThanOrEqual(byteLength);
  const three = { slot: 0, start: 0, tokens: Int32Array.of(3, 4, 5), drafted: true };
  const { states, logits } = await session.runWithStates!([{ ...three, logits: "all" }]);
  expect(await session.states([{ ...three, states: "all" }])).toEqual(states);
  expect(await session.run([{ ...three, logits: "all" }])).toEqual(logits);
  const tokens = Int32Array.of(4, 5, 6);
  const rows = { slot: 0, start: 0, tokens, positions: Int32Array.of(1, 2, 3), input: states, logits: "all" } as const;
  expect(states.length).toBe(3 * program.states.dim);
  expect(await beside.run([rows])).toEqual(await apart.run([rows]));
  for (const each of [beside, apart, session]) each.close();
  gguf.close();
});
