/**
 * A session's guarantees beyond single passes: batches, chunks, shift and copy like the reference, failures, threads,
 * and the same bits whatever else runs.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { LoadOptions, Program, Rows, Session } from "../../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { missingOps } from "../../../../src/engine/backends/missing-ops.ts";
import { ops, variants } from "../../../../src/engine/backends/simd/lower.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { makeModel, VOCAB } from "../../architectures/models.ts";
import { conformanceCases } from "../../../conformance/cases.ts";
import { drawn } from "../../../seed.ts";
import { differences, joined, nmse } from "../compare.ts";
import { withAttention } from "./keeping.ts";
import { everyLevel, twoLevels } from "./levels.ts";

const CTX_LEN = 48;
const SLOTS = 4;
/** Float32 sums in another order than the reference's. */
const NMSE_MAX = 1e-8;
const EMBEDDED = resolve(import.meta.dir, "../../../../models/hearth/hearth.gguf");

const cases = conformanceCases();
/** Each level draws some of them. */
const products = cases.filter(
  ({ name, program }) => /^(gatedMlp|moe): /.test(name) && missingOps(program, { ops, variants }).length === 0,
);

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-simd-session-"))));
afterAll(() => rm(folder, { recursive: true }));

async function withProgram<T>(name: string, use: (program: Program) => Promise<T>): Promise<T> {
  const path = name.endsWith(".gguf") ? name : join(folder, `${name}.gguf`);
  if (!existsSync(path)) await writeGguf(path, makeModel(name)); // levels share it
  const gguf = openGguf(path);
  try {
    return await use(loadProgram(gguf));
  } finally {
    gguf.close();
  }
}

const options = { ctxLen: CTX_LEN, slots: SLOTS, precise: true, threads: 2, cacheDir: undefined };
const rounded = { ...options, precise: false };
const MODES: [string, LoadOptions][] = [
  ["8-bit activations", rounded],
  ["float32, as small models have", { ...rounded, small: true }],
  ["keys and values in 4 bits", { ...rounded, kvType: "q4_0" }],
];
/** Lets threads of closed sessions end: living ones keep memory that garbage collection cannot free. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const tokenOf = (slot: number, position: number): number => (slot * 17 + position * 5 + 3) % VOCAB;

/** `count` tokens of a slot's own text. */
function rows(slot: number, start: number, count: number, logits: Rows["logits"] = "last"): Rows {
  return { slot, start, tokens: Int32Array.from({ length: count }, (_, i) => tokenOf(slot, start + i)), logits };
}

describe.each(twoLevels("session on the CPU", everyLevel))("$level", ({ level, backend }) => {
  /** Runs the same on a session of the reference and one of ours, and compares the results of each run. */
  async function compare(name: string, use: (session: Session) => AsyncGenerator<Float32Array>): Promise<void> {
    await withProgram(name, async (program) => {
      const sessions = [await cpuBackend.load(program, options), await backend.load(program, options)] as const;
      const [expected, got] = [use(sessions[0]), use(sessions[1])];
      let count = 0;
      for await (const logits of expected) {
        const { value } = await got.next();
        expect(nmse(value as Float32Array, logits), `run ${count++}`).toBeLessThan(NMSE_MAX); // both yield as many
      }
      expect((await got.next()).done).toBe(true);
      expect(count).toBeGreaterThan(1);
      for (const session of sessions) session.close();
    });
  }

  test("four sequences in one step give the reference's logits", () =>
    compare("llama-yarn", async function* (session) {
      for (let slot = 0; slot < SLOTS; slot++) yield session.run([rows(slot, 0, 3 + 5 * slot)]);
      for (let step = 0; step < 4; step++) {
        yield session.run(Array.from({ length: SLOTS }, (_, slot) => rows(slot, 3 + 5 * slot + step, 1)));
      }
    }));

  test("chunks of prompts beside steps of another sequence give the reference's logits, in any order", () =>
    compare("olmo2-windows", async function* (session) {
      yield session.run([rows(0, 0, 2)]);
      let start = 0;
      for (const [step, count] of [1, 2, 7, 16, 3].entries()) {
        yield session.run([rows(1, start, count, "all"), rows(0, 2 + step, 1), rows(2, start, count, "last")]);
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

  test.each(["llama", "phi3-long", "gemma3", "smollm3", "llama-yarn"])(
    "%s: a shifted slot continues as the reference does",
    (name) =>
      compare(name, async function* (session) {
        yield session.run([rows(2, 0, CTX_LEN)]);
        session.shift(2, { keep: 4, discard: 17, length: CTX_LEN });
        yield session.run([rows(2, CTX_LEN - 17, 5, "all")]);
        session.shift(2, { keep: 0, discard: 30, length: CTX_LEN - 12 });
        yield session.run([rows(2, 6, 1)]);
      }),
  );

  test.each([
    { kvType: "q8_0", part: 0.57, error: 1e-3 },
    { kvType: "q4_0", part: 1 / 3.5, error: 0.02 },
  ] as const)("keys and values in $kvType take less memory, and give nearly the results of float16", (each) =>
    withProgram(EMBEDDED, async (program) => {
      const { kvType, part, error } = each;
      const [half, small] = [await backend.load(program, rounded), await backend.load(program, { ...rounded, kvType })];
      expect(small.bytes.kv / half.bytes.kv).toBeLessThan(part);
      const { perToken } = await backend.slotBytes!(program, { ...rounded, kvType });
      expect(small.bytes.kv).toBe(perToken * Math.ceil(CTX_LEN / 32) * 32 * SLOTS);
      const results: Float32Array[][] = [half, small].map(() => []);
      for (const [i, session] of [half, small].entries()) {
        const keep = async (batch: readonly Rows[]) => results[i]!.push((await session.run(batch)).slice());
        await keep([rows(2, 0, CTX_LEN)]);
        session.shift(2, { keep: 4, discard: 17, length: CTX_LEN });
        await keep([rows(2, CTX_LEN - 17, 5, "all")]);
        session.copy({ from: 2, to: 0, length: 30 });
        await keep([rows(0, 30, 1), rows(2, CTX_LEN - 12, 1)]);
        session.close();
      }
      for (const [i, logits] of results[1]!.entries()) {
        expect(nmse(logits, results[0]![i]!), `run ${i}`).toBeLessThan(error);
        expect(differences(logits, results[0]![i]!)).toBeGreaterThan(0);
      }
    }),
  );

  test("a copied prefix continues in its own slot, and the original slot is unchanged", () =>
    compare("qwen3", async function* (session) {
      yield session.run([rows(0, 0, 12)]);
      yield session.run([rows(3, 0, 30)]);
      session.copy({ from: 0, to: 3, length: 9 });
      yield session.run([rows(3, 9, 4, "all"), rows(0, 12, 1)]);
      session.copy({ from: 3, to: 1, length: 13 });
      yield session.run([rows(0, 13, 1), rows(3, 13, 1)]);
      yield session.run([rows(0, 14, 1), rows(1, 13, 1), rows(3, 14, 1)]);
    }));

  test("a token beyond the vocabulary is refused by its id, and the session remains usable", () =>
    withProgram("qwen2", async (program) => {
      const session = await backend.load(program, options);
      const bad = session.run([{ slot: 0, start: 0, tokens: Int32Array.of(1, VOCAB), logits: "last" }]);
      expect(await bad.catch((error: unknown) => error)).toMatchObject({
        code: "bad_request",
        message: `token ${VOCAB}: expected an id of 0 … ${VOCAB - 1}`,
      });
      expect((await session.run([rows(0, 0, 1)])).length).toBe(VOCAB);
      session.close();
    }));

  test("vectors, positions and spans that do not fit their rows are refused, and the session remains usable", () =>
    withProgram("qwen2", async (program) => {
      const session = await backend.load(program, options);
      const bad: [Partial<Rows>, string][] = [
        [{ vectors: new Float32Array(3) }, "vectors of 3 values"],
        [{ positions: Int32Array.of(0) }, "1 positions of 4 rows"],
        [{ positions: Int32Array.of(0, 1, CTX_LEN, 2) }, `position ${CTX_LEN} in a context of ${CTX_LEN}`],
        [{ spans: [{ first: 2, end: 5 }] }, "a span 2 … 5 of 4 rows"],
      ];
      for (const [own, message] of bad) {
        await expect(session.run([{ ...rows(0, 0, 4), ...own }])).rejects.toThrow(message);
      }
      expect((await session.run([rows(0, 0, 1)])).length).toBe(VOCAB);
      session.close();
    }));

  test("a context that no memory can hold is refused by its size", () =>
    withProgram("qwen2", async (program) => {
      const load = backend.load(program, { ...options, ctxLen: 2 ** 40 });
      expect(await load.catch((error: unknown) => error)).toMatchObject({
        code: "too_large",
        message: expect.stringMatching(
          level === "wasm"
            ? /which WebAssembly can address, got \d+ bytes of weights and \d+ of KV cache;/
            : new RegExp(`^KV cache of ${SLOTS} × ${2 ** 40} tokens: expected `),
        ),
      });
    }));

  test.each(["output_norm.weight", "blk.1.ffn_up.weight", "blk.0.attn_q.bias"])(
    "%s with NaN is an error of the run, in precise and in default mode",
    (tensor) =>
      withProgram("qwen2", async (program) => {
        const read = (name: string): Uint8Array => {
          const bytes = program.weights.read(name);
          return name === tensor ? new Uint8Array(bytes.length).fill(0xff) : bytes;
        };
        for (const each of [options, rounded]) {
          const session = await backend.load({ ...program, weights: { path: program.weights.path, read } }, each);
          const run = session.run([rows(0, 0, 2)]);
          expect(await run.catch((error: unknown) => error)).toMatchObject({
            code: "runner",
            message: expect.stringMatching(/: logits: expected numbers, got NaN at row 0, token 0/),
          });
          session.close();
        }
      }),
  );

  test("a tensor with fewer bytes than its shape needs is refused at load", () =>
    withProgram("qwen2", async (program) => {
      const read = (name: string): Uint8Array =>
        name === "blk.0.ffn_down.weight" ? program.weights.read(name).subarray(1) : program.weights.read(name);
      const load = backend.load({ ...program, weights: { path: program.weights.path, read } }, options);
      expect(await load.catch((error: unknown) => error)).toMatchObject({
        code: "runner",
        message: expect.stringMatching(/^'blk.0.ffn_down.weight': expected \d+ bytes for .*, got \d+$/),
      });
    }));

  describe("bits are the same", () => {
    test.each(MODES)("for steps of the embedded model with %s, alone, together and beside prompts", (_, mode) =>
      withProgram(EMBEDDED, async (program) => {
        const session = await backend.load(program, mode);
        for (let slot = 0; slot < SLOTS; slot++) await session.run([rows(slot, 0, 9 + slot)]);
        const step = Array.from({ length: SLOTS }, (_, slot) => rows(slot, 9 + slot, 1));
        const single: Float32Array[] = [];
        for (const each of step) single.push((await session.run([each])).slice());
        const { vocabSize } = program.shape;
        for (const slots of [
          [0, 1],
          [0, 1, 2],
          [0, 1, 2, 3],
          [3, 1, 2],
          [0, 3],
        ]) {
          const beside = slots.includes(2) ? [] : [rows(2, 0, 17, "none")];
          const logits = await session.run([...beside, ...slots.map((slot) => step[slot]!)]);
          for (const [i, slot] of slots.entries()) {
            const own = logits.slice(i * vocabSize, (i + 1) * vocabSize);
            expect(differences(own, single[slot]!), `slot ${slot} of ${slots}`).toBe(0);
          }
        }
        session.close();
      }),
    );

    test.each(MODES)("for a prompt with %s in chunks, beside others, by any number of threads", (_, mode) =>
      withProgram(EMBEDDED, async (program) => {
        const one = await backend.load(program, { ...mode, threads: 1 });
        const whole = (await one.run([rows(0, 0, 40)])).slice();
        one.close();
        for (const threads of [2, 3]) {
          const session = await backend.load(program, { ...mode, threads });
          await session.run([rows(3, 0, 5)]);
          // not 1: that is a row of decode, which has other bits
          for (const chunk of [2, 7, 16, 33, 40]) {
            let last: Float32Array | undefined;
            for (let at = 0; at < 40; at += chunk) {
              const own = { ...rows(0, at, Math.min(chunk, 40 - at)), slot: 1 };
              last = await session.run([own, { ...rows(3, 5, 1), logits: "none" }]);
            }
            expect(differences(last!, whole), `chunks of ${chunk}, ${threads} threads`).toBe(0);
          }
          session.close();
        }
      }),
    );

    test("for products of any block type, in one to sixteen rows", async () => {
      const slots = 16;
      expect(products.length).toBeGreaterThan(25);
      for (const { name, program } of drawn(`steps at ${level}`, products, 6)) {
        // A step with state: without it, a batch consists of whole sequences.
        const keeping = withAttention(program);
        const session = await backend.load(keeping, { ...rounded, slots });
        const steps = Array.from({ length: slots }, (_, slot) => ({
          ...rows(slot, 0, 1),
          tokens: Int32Array.of(slot + 1),
        }));
        const single: Float32Array[] = [];
        for (const step of steps) single.push((await session.run([step])).slice());
        for (const count of [2, 3, 5, 8, 9, 16]) {
          const expected = joined(single.slice(0, count));
          expect(differences(await session.run(steps.slice(0, count)), expected), `${name}, ${count} rows`).toBe(0);
        }
        session.close();
        await settle();
      }
    }, 60_000);

    test.each(["f16", "q4_0"] as const)(
      "for a prompt of several blocks of attention in chunks, keys in %s",
      async (kvType) => {
        const long = cases.filter(({ name }) => /^attention: a long context, .*(64|65|rotate)/.test(name));
        expect(long.length).toBeGreaterThan(4);
        const count = 290;
        const tokens = Int32Array.from({ length: count }, (_, i) => (i * 7) % 11);
        for (const { name, program, options } of long) {
          const load = (threads: number): Promise<Session> =>
            backend.load(program, { ...rounded, kvType, threads, ...options });
          const one = await load(1);
          const whole = (await one.run([{ slot: 0, start: 0, tokens, logits: "all" }])).slice();
          one.close();
          const several = await load(3);
          for (const chunk of kvType === "f16" ? [2, 31, 100, 145] : [31, 145]) {
            const got: Float32Array[] = [];
            for (let at = 0; at < count; at += chunk) {
              const some = { slot: 1, start: at, tokens: tokens.subarray(at, at + chunk), logits: "all" } as const;
              const beside = { slot: 2, start: at, tokens: Int32Array.of(3), logits: "none" } as const;
              got.push((await several.run([some, beside])).slice());
            }
            expect(differences(joined(got), whole), `${name}, chunks of ${chunk}`).toBe(0);
          }
          several.close();
          await settle();
        }
      },
    );

    test("for products of any block type in a prompt, at once and in chunks", async () => {
      const count = 14;
      const tokens = Int32Array.from({ length: count }, (_, i) => i + 1);
      for (const { name, program } of drawn(`prompts at ${level}`, products, 6)) {
        const session = await backend.load(withAttention(program), rounded);
        const whole = (await session.run([{ slot: 0, start: 0, tokens, logits: "all" }])).slice();
        for (const chunk of [2, 4, 6, 12]) {
          const got: Float32Array[] = [];
          for (let at = 0; at < count; at += chunk) {
            const some = { slot: 1, start: at, tokens: tokens.subarray(at, at + chunk), logits: "all" } as const;
            got.push((await session.run([some])).slice());
          }
          expect(differences(joined(got), whole), `${name}, chunks of ${chunk}`).toBe(0);
        }
        session.close();
        await settle();
      }
    }, 60_000);
  });

  test("weights are counted once, as the mapped file or as their copies", () =>
    withProgram(EMBEDDED, async (program) => {
      const size = Bun.file(EMBEDDED).size;
      const [mapped, copied] = [
        await backend.load(program, rounded),
        await backend.load(program, { ...rounded, small: true }),
      ];
      const copies = level === "wasm" ? size : 0;
      expect(mapped.bytes.weights + copies).toBeWithin(0.9 * size, size + 1);
      expect(copied.bytes.weights).toBeLessThan(0.1 * size);
      expect(copied.bytes.scratch).toBeGreaterThan(0.9 * size);
      for (const session of [mapped, copied]) session.close();
    }));

  test(
    "several sessions at once with more threads than cores give the same bits",
    () =>
      withProgram(EMBEDDED, async (program) => {
        const sessions: Session[] = [];
        for (let i = 0; i < 3; i++) sessions.push(await backend.load(program, { ...rounded, threads: 9 }));
        const alone = await backend.load(program, { ...rounded, threads: 1 });
        const expected = await exercise(alone);
        alone.close();
        for (const session of sessions) expect(differences(await exercise(session), expected)).toBe(0);
        for (const session of sessions) session.close();
      }),
    60_000,
  );
});

/** A prompt and many steps, each together with other sequences. */
async function exercise(session: Session): Promise<Float32Array> {
  const all: number[] = [];
  for (let round = 0; round < 3; round++) {
    for (let slot = 0; slot < SLOTS; slot++) await session.run([rows(slot, 0, 6 + slot)]);
    for (let step = 0; step < 25; step++) {
      const batch = Array.from({ length: SLOTS }, (_, slot) => rows(slot, 6 + slot + step, 1));
      const logits = await session.run(batch);
      all.push(logits[step]!, logits.at(-1)!);
    }
  }
  return Float32Array.from(all);
}
