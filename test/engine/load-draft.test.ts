/** A draft model on the SIMD kernels: the same answers in fewer steps, and answers where there can be none. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Backend } from "../../src/backend/backend.ts";
import { systemLoop } from "../../src/base/event-loop.ts";
import { loadEngine, type LoadedEngine } from "../../src/engine/load.ts";
import type { SequenceEvent, SequenceRequest } from "../../src/engine/sequence.ts";
import { mapFile } from "../../src/files/map.ts";
import { writeGguf } from "../../src/files/write.ts";
import { SAMPLING_DEFAULTS, type SamplingOptions } from "../../src/sampling/options.ts";
import { makeModel } from "../arch/models.ts";
import { simdLevels } from "../backend/simd/levels.ts";

setDefaultTimeout(60_000);

const EMBEDDED = resolve(import.meta.dir, "../../models/hearth/hearth.gguf");
let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-draft-"))));
afterAll(() => rm(folder, { recursive: true }));

interface Opened extends LoadedEngine {
  /** Runs of the model, and of its draft model. */
  readonly runs: readonly number[];
  ask(text: string, options: Partial<SamplingOptions>, more?: Partial<SequenceRequest>): Promise<string>;
}

/** @param costs of a run of the model, and of its draft model, on the engine's clock */
async function open(backend: Backend, draft: string | undefined, costs: readonly number[]): Promise<Opened> {
  let now = 0;
  const runs: number[] = [];
  const load: Backend["load"] = async (program, options) => {
    const session = await backend.load(program, options);
    const which = runs.push(0) - 1;
    const run: typeof session.run = (batch) => {
      runs[which]!++;
      now += costs[which]!;
      return session.run(batch);
    };
    return { ...session, run };
  };
  const listeners = new Map<number, (event: SequenceEvent) => void>();
  const loaded = await loadEngine(EMBEDDED, {
    backend: { ...backend, load },
    loop: { ...systemLoop(), nowNs: () => now },
    open: mapFile,
    draft,
    ctxLen: 256,
    slots: 2,
    chunk: 64,
    threads: 1,
    precise: false,
    cacheDir: undefined,
    emit: (events) => events.forEach((event) => listeners.get(event.id)?.(event)),
    onEmbed: () => {},
  });
  let last = 0;
  const ask: Opened["ask"] = (text, options, more = {}) => {
    const { promise, resolve: done } = Promise.withResolvers<string>();
    const id = ++last;
    let said = "";
    listeners.set(id, (event) => {
      if (event.kind === "text") said += event.text;
      else if (event.kind !== "prompt") done(event.kind === "error" ? event.message : said);
    });
    const ids = loaded.tokenizer.encode(text, { addSpecial: true, parseSpecial: true });
    const wanted = { ...SAMPLING_DEFAULTS, temperature: 0, num_predict: 40, ...options };
    void loaded.engine.submit({ id, prompt: [{ kind: "ids", ids }], options: wanted, shift: true, ...more });
    return promise;
  };
  return { ...loaded, runs, ask };
}

const [level] = simdLevels;

describe.skipIf(!level)("on the best level of this machine", () => {
  const { backend } = level ?? { backend: undefined as never };

  test("two streams answer as without, at temperature 0 and above, under a grammar and with a stop string", async () => {
    const schema = { type: "object", properties: { name: { type: "string", maxLength: 30 } }, required: ["name"] };
    const got: string[][] = [];
    const steps: number[] = [];
    for (const draft of [EMBEDDED, undefined]) {
      const { ask, engine, info, runs } = await open(backend, draft, [20, 1]);
      expect(info.draftUnused).toBeUndefined();
      const first = await Promise.all([
        ask("Tell me a story about a fox.", {}),
        ask("What is the sea?", { temperature: 0.9, seed: 4 }),
      ]);
      const again = await Promise.all([
        ask("Tell me a story about a fox.", { temperature: 0.9, seed: 5, repeat_penalty: 1.2 }),
        ask("Say who you are.", {}, { format: schema }),
      ]);
      got.push([...first, ...again, await ask("Tell me a story about a fox.", { stop: [first[0]!.slice(30, 34)] })]);
      steps.push(runs[0]!);
      await engine.close();
    }
    expect(got[0]).toEqual(got[1]!);
    expect(got[0]!.every((text) => text.length > 5)).toBe(true);
    expect(steps[0]! * 2).toBeLessThan(steps[1]!);
  });

  test("a model whose draft has another vocabulary, is none, or is missing answers, and says why", async () => {
    const other = join(folder, "other.gguf");
    await writeGguf(other, makeModel("llama"));
    for (const [path, reason] of [
      [other, /expected a (tokenizer|vocabulary) .* as the model has, got/],
      [join(folder, "none.gguf"), /none\.gguf/],
      [import.meta.path, /load-draft\.test\.ts/],
    ] as const) {
      const { ask, engine, info, runs } = await open(backend, path, [20, 1]);
      expect(info.draftUnused).toMatch(reason);
      expect((await ask("Tell me a story.", { num_predict: 4 })).length).toBeGreaterThan(0);
      expect(runs).toHaveLength(1);
      await engine.close();
    }
  });

  test("a backend that takes no guesses leaves the draft model out", async () => {
    const plain: Backend = {
      ...backend,
      load: async (program, options) => ({ ...(await backend.load(program, options)), verifies: false }),
    };
    const { engine, info, runs } = await open(plain, EMBEDDED, [20, 1]);
    expect(info.draftUnused).toContain("cannot be guessed on this backend");
    expect(runs).toHaveLength(1);
    await engine.close();
  });
});
