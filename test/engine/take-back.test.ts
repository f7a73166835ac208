/** Models with recurrent states take guesses too: wrong ones are taken back, and answers stay the same. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Backend, Rows } from "../../src/backend/backend.ts";
import { systemLoop } from "../../src/base/event-loop.ts";
import { loadEngine } from "../../src/engine/load.ts";
import type { SequenceEvent } from "../../src/engine/sequence.ts";
import { mapFile } from "../../src/files/map.ts";
import { writeGguf } from "../../src/files/write.ts";
import { SAMPLING_DEFAULTS, type SamplingOptions } from "../../src/sampling/options.ts";
import { makeModel, VOCAB } from "../arch/models.ts";
import { simdLevels } from "../backend/simd/levels.ts";

setDefaultTimeout(60_000);

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-take-back-"))));
afterAll(() => rm(folder, { recursive: true }));

/** A text that repeats itself with a change now and then, so that guesses are made and some are wrong. */
const PROMPT = Array.from(
  { length: 60 },
  (_, i) => 5 + (((i % 12) * 7 + (i === 30 || i === 43 ? 1 : 0)) % (VOCAB - 8)),
);

interface Ask {
  readonly ids: readonly number[];
  readonly options?: Partial<SamplingOptions>;
}

/** Logits that lean to a text which repeats itself but for every ninth token. */
function leaning(logits: Float32Array, batch: readonly Rows[]): Float32Array {
  let row = 0;
  for (const { start, tokens, logits: wanted } of batch) {
    for (let i = wanted === "all" ? 0 : tokens.length - 1; wanted !== "none" && i < tokens.length; i++, row++) {
      const at = start + i;
      logits[row * VOCAB + (at % 9 === 0 ? 5 + (at % 41) : 10 + (at % 7))]! += 24;
    }
  }
  return logits;
}

/** What is answered, and the batches that were run. */
async function answers(backend: Backend, file: string, asked: readonly (readonly Ask[])[], guesses: boolean) {
  const batches: (readonly Rows[])[] = [];
  let now = 0;
  const load: Backend["load"] = async (program, options) => {
    const { slices: _, ...session } = await backend.load(program, options); // all logits lean
    const run: typeof session.run = (batch) => {
      batches.push(batch);
      now += 20; // a row more costs nothing
      return session.run(batch).then((logits) => leaning(logits, batch));
    };
    return { ...session, run, ...(guesses ? {} : { verifies: false }) };
  };
  const done = new Map<number, (event: SequenceEvent) => void>();
  const { engine } = await loadEngine(file, {
    backend: { ...backend, load },
    loop: { ...systemLoop(), nowNs: () => now },
    open: mapFile,
    ctxLen: 256,
    slots: 2,
    chunk: 64,
    threads: 1,
    precise: false,
    cacheDir: undefined,
    cacheMemory: 1e8,
    emit: (events) =>
      events.forEach((event) => event.kind !== "text" && event.kind !== "prompt" && done.get(event.id)?.(event)),
    onEmbed: () => {},
  });
  let id = 0;
  const ask = ({ ids, options = {} }: Ask): Promise<number[]> => {
    const own = ++id;
    const wanted = { ...SAMPLING_DEFAULTS, temperature: 0, repeat_penalty: 1, num_predict: 60, ...options };
    const prompt = [{ kind: "ids" as const, ids: Int32Array.from(ids) }];
    return new Promise((resolve, reject) => {
      done.set(own, (event) => {
        if (event.kind === "done") resolve([...event.tokens]);
        else if (event.kind === "error") reject(new Error(event.message));
      });
      void engine.submit({ id: own, prompt, options: wanted, shift: true });
    });
  };
  const said: number[][] = [];
  for (const together of asked) said.push(...(await Promise.all(together.map(ask))));
  await engine.close();
  return { said, batches };
}

describe.skipIf(simdLevels.length === 0)("on the best level of this machine", () => {
  const { backend } = simdLevels[0] ?? { backend: undefined as never };

  test.each(["qwen35", "mamba2", "nemotron_h"])("%s: guesses from earlier text, some of them wrong", async (name) => {
    const file = join(folder, `${name}.gguf`);
    await writeGguf(file, makeModel(name));
    const first: Ask[] = [
      { ids: PROMPT, options: { repeat_penalty: 1.2, repeat_last_n: 9 } },
      { ids: PROMPT.slice(7), options: { temperature: 0.9, seed: 3, top_k: 2 } },
    ];
    const plain = await answers(backend, file, [first], false);
    const next = plain.said.map((ids) => ({ ids: [...ids, ...PROMPT.slice(3, 20)] })); // and the turns behind them
    const asked = [
      first,
      next,
      [{ ids: PROMPT, options: { num_predict: 150, temperature: 1, seed: 9, top_k: 2 } }],
      next,
    ];
    const [some, none] = [await answers(backend, file, asked, true), await answers(backend, file, asked, false)];
    expect(some.said).toEqual(none.said);
    const guessed = some.batches.filter((batch) => batch.some(({ drafted }) => drafted));
    const runs = guessed.flatMap((batch) => batch.map(({ slot, start }) => ({ slot, start })));
    const takenBack = runs.filter(({ slot, start }, i) => {
      return runs.slice(0, i).findLast((before) => before.slot === slot)?.start === start;
    });
    expect(guessed.length).toBeGreaterThan(3);
    expect(takenBack.length).toBeGreaterThan(0);
    expect(some.batches.length).toBeLessThan(none.batches.length);
  });
});
