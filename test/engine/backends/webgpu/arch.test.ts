/**
 * Whole models on a software adapter against llama.cpp: reference files, and models made in code. A run draws some of
 * them by its seed: the CPU's backends answer with all, and the conformance cases reach every kernel.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import type { Backend, LoadOptions, Session, StateRows } from "../../../../src/engine/program/backend.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { cosine, embedOn } from "../../architectures/embed-on.ts";
import { encoders, makeEncoder, RECORDED_TEXTS } from "../../architectures/encoders.ts";
import { likeLlamaCpp } from "../../architectures/like-llama-cpp.ts";
import { CTX_LEN, makeModel, specs, TOKENS } from "../../architectures/models.ts";
import { memoryOf } from "../../../conformance/memory-cases.ts";
import { golden, goldenTest } from "../../../golden.ts";
import { drawn } from "../../../seed.ts";
import type { BackendChild } from "../child.ts";
import { nmse } from "../compare.ts";
import { sharedWebGpu } from "./shared.ts";

const NMSE_MAX = 1e-5;
const GOLDEN = (
  "gemma-dense gemma2-dense gemma3-dense granite-dense granitemoe-moe llama-dense llama-moe mistral3-dense " +
  "olmo2-dense phi3-dense qwen2-dense qwen3-dense qwen3moe-moe smollm3-dense"
).split(" ");
const GOLDEN_TOKENS = Int32Array.from({ length: 32 }, (_, i) => (i * 37 + 11) % 128);

let gpu: BackendChild;
let folder = "";
beforeAll(async () => {
  gpu = await sharedWebGpu();
  folder = await mkdtemp(join(tmpdir(), "hearth-webgpu-arch-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

async function withSession<T>(
  path: string,
  use: (session: Session) => Promise<T>,
  { backend = gpu.backend, ...more }: Partial<LoadOptions> & { backend?: Backend } = {},
): Promise<T> {
  const gguf = openGguf(path);
  const options = { ctxLen: CTX_LEN, slots: 2, precise: true, threads: 1, cacheDir: undefined, ...more };
  try {
    const session = await backend.load(likeLlamaCpp(loadProgram(gguf)), options);
    const result = await use(session);
    session.close();
    return result;
  } finally {
    gguf.close();
  }
}

const whole = (tokens: Int32Array) => async (session: Session) =>
  (await session.run([{ slot: 1, start: 0, tokens, logits: "all" }])).slice();

/** The same in a chunk and token by token, together with another sequence. */
async function inParts(session: Session, tokens: Int32Array): Promise<Float32Array> {
  const parts: number[] = [];
  for (const [i, start] of [0, tokens.length - 2, tokens.length - 1].entries()) {
    const end = i === 0 ? tokens.length - 2 : start + 1;
    const beside = { slot: 0, start: i, tokens: tokens.subarray(9 + i, 10 + i), logits: "none" } as const;
    const rows = { slot: 1, start, tokens: tokens.subarray(start, end), logits: "all" } as const;
    parts.push(...(await session.run([beside, rows])));
  }
  return Float32Array.from(parts);
}

const readFloats = async (path: string): Promise<Float32Array> => new Float32Array(await Bun.file(path).arrayBuffer());

describe("the reference models", () => {
  for (const name of drawn("reference models on the GPU", GOLDEN, 1)) {
    goldenTest(
      `${name} gives llama.cpp's logits`,
      async () => {
        const expected = await readFloats(golden(`archs/${name}.f32`));
        const got = await withSession(golden(`archs/${name}.gguf`), whole(GOLDEN_TOKENS));
        expect(nmse(got, expected)).toBeLessThan(NMSE_MAX);
      },
      120_000,
    );
  }
});

describe("models made in code", () => {
  for (const name of drawn("models on the GPU", Object.keys(specs), 2)) {
    test(`${name} gives llama.cpp's logits, whole and in parts`, async () => {
      const path = join(folder, `${name}.gguf`);
      await writeGguf(path, makeModel(name));
      const recorded = await readFloats(resolve(import.meta.dir, `../../architectures/logits/${name}.f32`));
      await withSession(path, async (session) => {
        const got = await whole(TOKENS)(session);
        expect(nmse(got.slice(-recorded.length), recorded)).toBeLessThan(NMSE_MAX);
        expect(nmse(await inParts(session, TOKENS), got)).toBeLessThan(NMSE_MAX);
      });
    }, 120_000);
  }

  test("an image's rows change the logits as in transformers", async () => {
    const path = join(folder, "mllama.gguf");
    await writeGguf(path, makeModel("mllama"));
    const expected = await readFloats(resolve(import.meta.dir, "../../architectures/logits/mllama-image.f32"));
    const memory = memoryOf("image", 5, 64); // as in mllama.test.ts
    await withSession(path, async (session) => {
      const got = await session.run([{ slot: 1, start: 0, tokens: TOKENS, logits: "all", memory }]);
      expect(nmse(got.slice(-expected.length), expected)).toBeLessThan(NMSE_MAX);
    });
  }, 120_000);

  test("hidden states agree with the reference before and after a shift and a copy", async () => {
    const path = join(folder, "states.gguf");
    await writeGguf(path, makeModel("llama"));
    const statesOf = async (session: Session): Promise<Float32Array> => {
      const rows = (start: number, end: number, states: StateRows["states"]): StateRows[] => [
        { slot: 0, start, tokens: TOKENS.subarray(start, end), states },
      ];
      const before = (await session.states(rows(0, 20, "all"))).slice();
      session.shift(0, { keep: 3, discard: 6, length: 20 });
      const shifted = (await session.states(rows(14, 16, "all"))).slice();
      session.copy({ from: 0, to: 1, length: 16 });
      const copied = await session.states([{ slot: 1, start: 16, tokens: TOKENS.subarray(16, 17), states: "last" }]);
      return Float32Array.from([...before, ...shifted, ...copied]);
    };
    const expected = await withSession(path, statesOf, { backend: cpuBackend });
    expect(nmse(await withSession(path, statesOf), expected)).toBeLessThan(NMSE_MAX);
  }, 120_000);
});

describe("a decoded row", () => {
  const names = ["gemma3", "granitemoe", "llama-biases", "mistral3", "olmo2", "qwen3moe"];
  for (const name of drawn("company on the GPU", names, 1)) {
    test(`has the same bits alone and beside others in ${name}`, async () => {
      const path = join(folder, `${name}-company.gguf`);
      await writeGguf(path, makeModel(name));
      const row = (slot: number, start: number, count: number, logits: "none" | "last") => ({
        slot,
        start,
        tokens: TOKENS.subarray(slot + start, slot + start + count),
        logits,
      });
      const [alone, beside] = await withSession(
        path,
        async (session) => {
          await session.run([0, 1, 2].map((slot) => row(slot, 0, 9 - slot, "none")));
          const last = [0, 1, 2].map((slot) => row(slot, 9 - slot, 1, "last"));
          const single: number[] = [];
          for (const each of last) single.push(...(await session.run([each])));
          return [single, [...(await session.run(last))]];
        },
        { slots: 3 },
      );
      expect(alone!.some((value) => value !== 0)).toBe(true);
      expect(beside!).toEqual(alone!);
    }, 120_000);
  }
});

describe("encoders", () => {
  for (const [name, spec] of drawn("encoders on the GPU", Object.entries(encoders), 1)) {
    test(`${name} gives llama.cpp's embeddings`, async () => {
      const path = join(folder, `${name}.gguf`);
      await writeGguf(path, makeEncoder(spec));
      const recorded = await readFloats(resolve(import.meta.dir, `../../architectures/embeddings/${name}.f32`));
      const dim = recorded.length / RECORDED_TEXTS.length;
      const got = await embedOn(path, RECORDED_TEXTS, { backend: gpu.backend, precise: true });
      for (const [i, vector] of got.entries())
        expect(cosine(vector, recorded.subarray(i * dim, (i + 1) * dim))).toBeGreaterThanOrEqual(0.99999);
    }, 120_000);
  }
});
