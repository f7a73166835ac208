/**
 * A session's guarantees beyond single passes: batches, chunks, skipped slots, shift and copy. The same is done to the
 * reference, and every result compared.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { readFileSync } from "node:fs";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { Program, Rows, Session } from "../../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { makeModel, VOCAB } from "../../architectures/models.ts";
import { conformanceCases } from "../../../conformance/cases.ts";
import { startOnnx } from "../child.ts";
import { differences, nmse } from "../compare.ts";

const CTX_LEN = 48;
const SLOTS = 4;
/** Float32 sums in another order than the reference's. */
const NMSE_MAX = 1e-8;
const EMBEDDED = resolve(import.meta.dir, "../../../../models/hearth/hearth.gguf");

const onnx = startOnnx();
let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-onnx-session-"))));
afterAll(async () => {
  await onnx.stop();
  await rm(folder, { recursive: true });
});

async function withProgram<T>(name: string, use: (program: Program) => Promise<T>): Promise<T> {
  const path = name.endsWith(".gguf") ? name : join(folder, `${name}.gguf`);
  if (path !== name) await writeGguf(path, makeModel(name));
  const gguf = openGguf(path);
  try {
    return await use(loadProgram(gguf));
  } finally {
    gguf.close();
  }
}

const options = { ctxLen: CTX_LEN, slots: SLOTS, precise: true, threads: 1, cacheDir: undefined };
const tokenOf = (slot: number, position: number): number => (slot * 17 + position * 5 + 3) % VOCAB;

/** `count` tokens of a slot's own text. */
function rows(slot: number, start: number, count: number, logits: Rows["logits"] = "last"): Rows {
  return { slot, start, tokens: Int32Array.from({ length: count }, (_, i) => tokenOf(slot, start + i)), logits };
}

/** Runs the same on a session of the reference and one of ours, and compares the results of each run. */
async function compare(name: string, use: (session: Session) => AsyncGenerator<Float32Array>): Promise<void> {
  await withProgram(name, async (program) => {
    const sessions = [await cpuBackend.load(program, options), await onnx.backend.load(program, options)] as const;
    const [expected, got] = [use(sessions[0]), use(sessions[1])];
    let count = 0;
    for await (const logits of expected) {
      const { value } = await got.next();
      expect(nmse(value as Float32Array, logits), `run ${count++}`).toBeLessThan(NMSE_MAX); // both yield the same number
    }
    expect((await got.next()).done).toBe(true);
    expect(count).toBeGreaterThan(1);
    for (const session of sessions) session.close();
  });
}

describe("batches", () => {
  test("four sequences in one step give the reference's logits", () =>
    compare("llama-yarn", async function* (session) {
      for (let slot = 0; slot < SLOTS; slot++) yield session.run([rows(slot, 0, 3 + 5 * slot)]);
      for (let step = 0; step < 4; step++) {
        yield session.run(Array.from({ length: SLOTS }, (_, slot) => rows(slot, 3 + 5 * slot + step, 1)));
      }
    }));

  test("slots that do not run in a step keep their cache", () =>
    compare("gemma3", async function* (session) {
      for (const [slot, count] of [4, 7, CTX_LEN, 9].entries()) yield session.run([rows(slot, 0, count)]);
      yield session.run([rows(0, 4, 1), rows(1, 7, 1), rows(3, 9, 1)]); // slot 2 is full
      yield session.run([rows(3, 10, 1), rows(1, 8, 1)]);
      yield session.run([rows(2, CTX_LEN - 1, 1)]);
      await session.run([rows(2, 0, 5, "none")]);
      for (let step = 0; step < 3; step++) yield session.run([rows(0, 5 + step, 1), rows(3, 11 + step, 1)]);
      yield session.run([rows(1, 9, 1), rows(2, 5, 2)]);
      yield session.run([rows(2, 7, 1), rows(1, 10, 1)]); // not in the order of their slots
    }));

  test("chunks of a prompt beside the steps of another sequence give the reference's logits", () =>
    compare("olmo2-windows", async function* (session) {
      yield session.run([rows(0, 0, 2)]);
      let start = 0;
      for (const [step, count] of [1, 2, 7, 16, 3].entries()) {
        yield session.run([rows(0, 2 + step, 1), rows(1, start, count, "all")]);
        start += count;
      }
      yield session.run([rows(1, 0, start)]); // the same from the start, in one piece
    }));

  test("rows at an earlier position replace the cache from there on", () =>
    compare("mistral3", async function* (session) {
      yield session.run([rows(1, 0, 20)]);
      yield session.run([{ ...rows(2, 6, 5, "all"), slot: 1 }]);
      yield session.run([rows(1, 11, 1)]);
    }));
});

describe("shift and copy", () => {
  for (const name of ["llama", "phi3-long", "gemma3", "smollm3", "llama-yarn"]) {
    test(`${name}: a shifted slot continues as the reference does`, () =>
      compare(name, async function* (session) {
        yield session.run([rows(2, 0, CTX_LEN)]);
        session.shift(2, { keep: 4, discard: 17, length: CTX_LEN });
        yield session.run([rows(2, CTX_LEN - 17, 5, "all")]);
        session.shift(2, { keep: 0, discard: 30, length: CTX_LEN - 12 });
        yield session.run([rows(2, 6, 1)]);
      }));
  }

  test("a copied prefix continues in its own slot, and the original slot is unchanged", () =>
    compare("qwen3", async function* (session) {
      yield session.run([rows(0, 0, 12)]);
      yield session.run([rows(3, 0, 30)]);
      session.copy({ from: 0, to: 3, length: 9 });
      yield session.run([rows(3, 9, 4, "all"), rows(0, 12, 1)]);
      session.copy({ from: 3, to: 1, length: 13 });
      yield session.run([rows(0, 13, 1), rows(3, 13, 1)]); // passes over the copy
      yield session.run([rows(0, 14, 1), rows(1, 13, 1), rows(3, 14, 1)]);
    }));
});

describe("failures", () => {
  test("a token beyond the vocabulary is refused by its id, and the session remains usable", () =>
    withProgram("qwen2", async (program) => {
      const session = await onnx.backend.load(program, options);
      const bad = session.run([{ slot: 0, start: 0, tokens: Int32Array.of(1, VOCAB), logits: "last" }]);
      expect(await bad.catch((error: unknown) => error)).toMatchObject({
        code: "bad_request",
        message: `token ${VOCAB}: expected an id of 0 … ${VOCAB - 1}`,
      });
      expect((await session.run([rows(0, 0, 1)])).length).toBe(VOCAB);
      session.close();
    }));

  test("a context that no memory can hold is refused by its size", () =>
    withProgram("qwen2", async (program) => {
      const load = onnx.backend.load(program, { ...options, ctxLen: 2 ** 40 });
      expect(await load.catch((error: unknown) => error)).toMatchObject({
        code: "too_large",
        message: expect.stringContaining(`KV cache of ${SLOTS} × ${2 ** 40} tokens: expected what this machine`),
      });
    }));

  /** The model with every byte of a tensor replaced. */
  const withBytes = (program: Program, tensor: string, byte: number): Program => {
    const read = (name: string): Uint8Array => {
      const bytes = program.weights.read(name);
      return name === tensor ? new Uint8Array(bytes.length).fill(byte) : bytes;
    };
    return { ...program, weights: { path: program.weights.path, read } };
  };

  test("weights whose sums overflow are an error that names the row and the token", () =>
    withProgram("qwen2", async (program) => {
      const session = await onnx.backend.load(withBytes(program, "output_norm.weight", 0x7f), options);
      const run = session.run([rows(0, 0, 2)]);
      expect(await run.catch((error: unknown) => error)).toMatchObject({
        code: "runner",
        message: expect.stringMatching(/^logits: expected finite values, found (NaN|-?Infinity) at row 0, token 0/),
      });
      session.close();
    }));

  test.each(["output_norm.weight", "blk.1.ffn_up.weight", "blk.0.attn_q.bias"])(
    "%s with values that are not finite is refused by its name",
    (tensor) =>
      withProgram("qwen2", async (program) => {
        const load = onnx.backend.load(withBytes(program, tensor, 0xff), { ...options, precise: false });
        expect(await load.catch((error: unknown) => error)).toMatchObject({
          code: "bad_file",
          message: expect.stringMatching(new RegExp(`: tensor '${tensor}': expected numbers, got (NaN|-?Infinity)`)),
        });
      }),
  );
});

/** Kernels for 8-bit products whose sums do not depend on the number of rows: measured on these. */
const hasVnni = process.platform === "linux" && /\bavx512_vnni\b/.test(readFileSync("/proc/cpuinfo", "utf8"));
const where = hasVnni ? "" : ` (measured with AVX-512 VNNI; this is ${cpus()[0]?.model})`;

describe("bits do not depend on the batch", () => {
  const alone = { ...options, precise: false, threads: 2 };

  test.skipIf(!hasVnni)(`a step of the embedded model has the same bits alone and beside others${where}`, () =>
    withProgram(EMBEDDED, async (program) => {
      const session = await onnx.backend.load(program, alone);
      for (let slot = 0; slot < SLOTS; slot++) await session.run([rows(slot, 0, 9 + slot)]);
      const step = Array.from({ length: SLOTS }, (_, slot) => rows(slot, 9 + slot, 1));
      const single: Float32Array[] = [];
      for (const each of step) single.push(await session.run([each]));
      const { vocabSize } = program.shape;
      for (const slots of [
        [0, 1],
        [0, 1, 2],
        [0, 1, 2, 3],
        [1, 2, 3],
        [0, 3],
      ]) {
        const logits = await session.run(slots.map((slot) => step[slot]!));
        for (const [i, slot] of slots.entries()) {
          const own = logits.slice(i * vocabSize, (i + 1) * vocabSize);
          expect(differences(own, single[slot]!), `slot ${slot} of ${slots}`).toBe(0);
        }
      }
      session.close();
    }),
  );

  test.skipIf(!hasVnni)(
    `a prompt of the embedded model has the same bits in chunks of two or more tokens${where}`,
    () =>
      withProgram(EMBEDDED, async (program) => {
        const session = await onnx.backend.load(program, alone);
        const whole = await session.run([rows(0, 0, 40)]);
        for (const chunk of [2, 7, 16, 33]) {
          let last: Float32Array | undefined;
          for (let at = 0; at < 40; at += chunk)
            last = await session.run([{ ...rows(0, at, Math.min(chunk, 40 - at)), slot: 1 }]);
          expect(differences(last!, whole), `chunks of ${chunk}`).toBe(0);
        }
        session.close();
      }),
  );

  const products = conformanceCases().filter(({ name }) => /^gatedMlp: [a-z]*\d/i.test(name));
  test.skipIf(!hasVnni)(`products of every block type have the same bits in one row and in four${where}`, async () => {
    expect(products.length).toBeGreaterThan(12);
    for (const { name, program } of products) {
      const session = await onnx.backend.load(program, alone);
      const steps = [0, 1, 2, 3].map((slot) => ({ ...rows(slot, 0, 1), tokens: Int32Array.of(slot + 1) }));
      const single: Float32Array[] = [];
      for (const step of steps) single.push(await session.run([step]));
      const expected = Float32Array.from(single.flatMap((each) => [...each]));
      expect(differences(await session.run(steps), expected), name).toBe(0);
      session.close();
    }
  });
});
