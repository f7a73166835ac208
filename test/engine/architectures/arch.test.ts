/**
 * Every architecture against llama.cpp. The reference files hold random models whose attention is weak; the models made
 * in code are strong in every part, cover the variants of rotation, windows and experts, and need no reference data.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { archs, loadProgram } from "../../../src/engine/architectures/index.ts";
import type { Session } from "../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { joined, nmse } from "../backends/compare.ts";
import { golden, goldenTest } from "../../golden.ts";
import { diffusionNames } from "./diffusion-models.ts";
import { readEmbedders } from "./embedders.ts";
import { likeLlamaCpp } from "./like-llama-cpp.ts";
import { readOutlines } from "./outlines.ts";
import { archOf, CTX_LEN, makeModel, modelNames, RECORDED, TOKENS, VOCAB } from "./models.ts";

const NMSE_MAX = 1e-5;
const GOLDEN = [
  "gemma-dense",
  "gemma2-dense",
  "gemma3-dense",
  "granite-dense",
  "granitemoe-moe",
  "llama-dense",
  "llama-moe",
  "mistral3-dense",
  "olmo2-dense",
  "phi3-dense",
  "qwen2-dense",
  "qwen3-dense",
  "qwen3moe-moe",
  "smollm3-dense",
];
const GOLDEN_TOKENS = Int32Array.from({ length: 32 }, (_, i) => (i * 37 + 11) % 128);

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-arch-"))));
afterAll(() => rm(folder, { recursive: true }));

/** Runs `use` on a session of a GGUF file. */
async function withSession<T>(path: string, use: (session: Session) => Promise<T>): Promise<T> {
  const gguf = openGguf(path);
  try {
    const options = { ctxLen: CTX_LEN, slots: 2, precise: true, threads: 1, cacheDir: undefined };
    return await use(await cpuBackend.load(likeLlamaCpp(loadProgram(gguf)), options));
  } finally {
    gguf.close();
  }
}

/** Logits of every token in one run. */
const runWhole = (tokens: Int32Array) => (session: Session) =>
  session.run([{ slot: 0, start: 0, tokens, logits: "all" }]).then((logits) => logits.slice());

/** The same in chunks of 7 and fewer, then token by token, in slot 1 together with another sequence in slot 0. */
async function runChunks(session: Session, tokens: Int32Array): Promise<Float32Array> {
  const other = tokens.toReversed();
  const starts = [0, 7, tokens.length - 4, tokens.length - 3, tokens.length - 2, tokens.length - 1];
  const parts: Float32Array[] = [];
  for (const [i, start] of starts.entries()) {
    const end = starts[i + 1] ?? tokens.length;
    const beside = { slot: 0, start: i, tokens: other.subarray(i, i + 1), logits: "last" } as const;
    const rows = { slot: 1, start, tokens: tokens.subarray(start, end), logits: "all" } as const;
    const logits = await session.run(i % 2 === 0 ? [beside, rows] : [rows, beside]);
    const vocabSize = logits.length / (end - start + 1);
    parts.push(i % 2 === 0 ? logits.slice(vocabSize) : logits.slice(0, logits.length - vocabSize));
  }
  return joined(parts);
}

const readFloats = async (path: string): Promise<Float32Array> => new Float32Array(await Bun.file(path).arrayBuffer());

describe("the reference models", () => {
  for (const name of GOLDEN) {
    goldenTest(`${name} gives llama.cpp's logits, whole and in chunks`, async () => {
      const expected = await readFloats(golden(`archs/${name}.f32`));
      await withSession(golden(`archs/${name}.gguf`), async (session) => {
        const whole = await runWhole(GOLDEN_TOKENS)(session);
        expect(nmse(whole, expected)).toBeLessThan(NMSE_MAX);
        expect(await runChunks(session, GOLDEN_TOKENS)).toEqual(whole);
      });
    });
  }

  test("an unknown architecture is refused with the list of the known ones", async () => {
    const path = join(folder, "nothing.gguf");
    await writeGguf(path, { metadata: { "general.architecture": "nothing" }, tensors: [] });
    const gguf = openGguf(path);
    expect(() => loadProgram(gguf)).toThrow(/expected one of .*bert, .*, smollm3, .*, got 'nothing'/);
    gguf.close();
  });
});

/** Encoders have no logits: see encoders.test.ts. */
const ENCODERS = ["bert", "nomic-bert"];

/** Compared in reference.test.ts alone. */
const REFERENCE_ONLY = ["deepseek2-ocr", "gemma-embedding", "nomic-bert-moe"];

/** It reads recordings: test/library/convert/originals.test.ts. */
const SPEECH = ["whisper"];

/** Its encoder reads prompts: t5.test.ts. */
const READERS = ["t5"];

describe("models made in code", () => {
  for (const name of modelNames) {
    test(`${name} has llama.cpp's logits, whole, in chunks and for the last token alone`, async () => {
      const path = join(folder, `${name}.gguf`);
      await writeGguf(path, makeModel(name));
      await withSession(path, async (session) => {
        const whole = await runWhole(TOKENS)(session);
        const recorded = await readFloats(join(import.meta.dir, "logits", `${name}.f32`));
        expect(recorded.length).toBe(RECORDED * VOCAB);
        expect(nmse(whole.slice(-recorded.length), recorded)).toBeLessThan(NMSE_MAX);
        expect(await runChunks(session, TOKENS)).toEqual(whole);
        const last = await session.run([{ slot: 0, start: 0, tokens: TOKENS, logits: "last" }]);
        expect(last.slice()).toEqual(whole.slice(-VOCAB));
      });
    });
  }

  test("every architecture has a model made in code, an outline, or a reference model", () => {
    const outlined = [...readOutlines().values(), ...readEmbedders().values()].map(({ arch }) => arch);
    const made = [...modelNames.map(archOf), ...diffusionNames, ...outlined, ...ENCODERS, ...REFERENCE_ONLY];
    expect([...new Set([...made, ...SPEECH, ...READERS])].sort()).toEqual(Object.keys(archs).sort());
  });
});
