/** Drafts and blocks on the GPU: rows that are verified together, and prefixes that leave their slot as bytes. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import type { KvCacheType } from "../../../../src/base/index.ts";
import { layerCount, loadSplit } from "../../../../src/engine/program/split.ts";
import type { Backend, Program, Rows, Session } from "../../../../src/engine/program/backend.ts";
import { makeModel, VOCAB } from "../../architectures/models.ts";
import { answersOf, leaning, type Ask } from "../../batching/answers-of.ts";
import { drawn } from "../../../seed.ts";
import type { BackendChild } from "../child.ts";
import { simdLevels } from "../simd/levels.ts";
import { sharedWebGpu } from "./shared.ts";

setDefaultTimeout(180_000);

let gpu: BackendChild;
let folder = "";
beforeAll(async () => {
  gpu = await sharedWebGpu();
  folder = await mkdtemp(join(tmpdir(), "hearth-webgpu-verifies-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function fileOf(name: string): Promise<string> {
  const file = join(folder, `${name}.gguf`);
  await writeGguf(file, makeModel(name));
  return file;
}

async function withProgram(name: string, use: (program: Program) => Promise<void>): Promise<void> {
  const gguf = openGguf(await fileOf(name));
  await use(loadProgram(gguf)).finally(() => gguf.close());
}

/** @param kvType `split`: in float16, with the first layers on the CPU */
function load(program: Program, kvType: KvCacheType | "split"): Promise<Session> {
  const options = { ctxLen: 128, slots: 4, precise: false, threads: 1, cacheDir: undefined };
  if (kvType !== "split") return gpu.backend.load(program, { ...options, kvType });
  const count = Math.ceil(layerCount(program) / 2);
  return loadSplit(program, options, { front: simd!.backend, back: gpu.backend, count });
}
const tokensOf = (text: number, count: number): Int32Array =>
  Int32Array.from({ length: count }, (_, i) => (i * (2 * text + 5) + 7 * text) % VOCAB);

const [simd] = simdLevels;
/** A run draws some by its seed, for drafts and for blocks. */
const MODELS = [
  ["llama", "f16"],
  ["llama", "q8_0"],
  ...(simd
    ? ([
        ["llama", "split"],
        ["qwen35", "split"],
      ] as const)
    : []),
  ["qwen3moe", "f16"],
  ["qwen35", "f16"],
  ["mamba2", "f16"],
] as const;

describe("drafted rows have the bits of single rows, beside a prompt and with more drafts than a pass for few rows", () => {
  test.each(drawn("drafts on the GPU", MODELS, 1))("%s, keys in %s", (name, kvType) =>
    withProgram(name, async (program) => {
      const session = await load(program, kvType);
      expect(session.verifies).toBe(true);
      const [held, drafted] = [9, 14];
      const texts = [0, 1, 2].map((slot) => tokensOf(slot, held + drafted));
      const begin = (): Rows[] =>
        texts.map((tokens, slot) => ({ slot, start: 0, tokens: tokens.slice(0, held), logits: "none" }));
      await session.run(begin());
      const single: number[][] = [[], [], []];
      for (let at = held; at < held + drafted; at++) {
        for (const [slot, tokens] of texts.entries()) {
          const rows: Rows = { slot, start: at, tokens: tokens.slice(at, at + 1), logits: "last" };
          single[slot]!.push(...(await session.run([rows])));
        }
      }
      await session.run(begin());
      const all = texts.map((tokens, slot): Rows => {
        return { slot, start: held, tokens: tokens.slice(held), logits: "all", drafted: true };
      });
      const prompt: Rows = { slot: 3, start: 0, tokens: tokensOf(3, 40), logits: "none" };
      const together = await session.run([all[0]!, prompt, ...all.slice(1)]);
      expect(together).toEqual(Float32Array.from(single.flat()));
      session.close();
    }),
  );
});

describe("a prefix that is read as blocks and written to another slot continues with the same bits", () => {
  test.each(drawn("blocks on the GPU", MODELS, 1))("%s, keys in %s", (name, kvType) =>
    withProgram(name, async (program) => {
      const session = await load(program, kvType);
      const { blocks, checkpoints } = session;
      for (const length of [1, 64, 100]) {
        const tokens = tokensOf(1, length + 3);
        await session.run([{ slot: 0, start: 0, tokens: tokens.slice(0, length), logits: "none" }]);
        await session.run([{ slot: 2, start: 0, tokens: tokensOf(5, 110), logits: "none" }]); // another text's
        for (let first = 0; first < length; first += blocks!.length) {
          const count = Math.min(blocks!.length, length - first);
          const bytes = await blocks!.read(0, first, count);
          expect(bytes.length).toBe(blocks!.bytesOf(count));
          await blocks!.write(2, { first, count, bytes });
        }
        if (checkpoints) {
          const packed = await blocks!.checkpoints!.pack(await checkpoints.save(0, length));
          checkpoints.restore(2, blocks!.checkpoints!.unpack(length, packed)!);
        }
        const rest = (slot: number): Rows[] => [{ slot, start: length, tokens: tokens.slice(length), logits: "all" }];
        expect(await session.run(rest(2))).toEqual(await session.run(rest(0)));
      }
      session.close();
    }),
  );
});

describe("an engine gives the same answers with drafts as without", () => {
  /** The text that the logits lean to. */
  const prompt = Array.from({ length: 60 }, (_, i) => 10 + (i % 7));
  test.each(drawn("an engine on the GPU", ["llama", "qwen35"], 1))("%s", async (name) => {
    const backend: Backend = {
      name: "webgpu",
      async load(program, { ctxLen, slots, threads, precise }) {
        const own = { ctxLen, slots, threads, precise, cacheDir: undefined }; // can be sent
        const { topK: _, ...session } = await gpu.backend.load(program, own); // so that all logits are visible
        return session;
      },
    };
    const setup = { backend, file: await fileOf(name), change: leaning };
    const options = { num_predict: 16 };
    const other = { ...options, temperature: 0.9, seed: 3, top_k: 2 };
    const asked: Ask[][] = [
      [
        { ids: prompt, options },
        { ids: prompt.slice(7), options: other },
      ],
    ];
    const none = await answersOf({ ...setup, drafts: false }, asked);
    const some = await answersOf({ ...setup, drafts: true }, asked);
    expect(some.said).toEqual(none.said);
    const guessed = some.batches.filter((batch) => batch.some(({ drafted }) => drafted));
    expect(guessed.length).toBeGreaterThan(1);
  });
});
