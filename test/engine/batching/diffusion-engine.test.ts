/**
 * Answers of diffusion models through the engine: as filled in by the whole program, streamed, bounded, and several at
 * once.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { Denoising, rankBy } from "../../../src/engine/batching/denoising.ts";
import { planPasses } from "../../../src/engine/batching/diffusion-plan.ts";
import type { EmbedEvent } from "../../../src/engine/batching/embedder.ts";
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";
import { loadEngine, type LoadedEngine } from "../../../src/engine/batching/load.ts";
import type { SequenceEvent, SequenceRequest } from "../../../src/engine/batching/sequence.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { mapFile } from "../../../src/engine/formats/files/map.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { SAMPLING_DEFAULTS, type SamplingOptions } from "../../../src/engine/text/sampling/options.ts";
import { makeDiffusionModel, MASK, PROMPT } from "../architectures/diffusion-models.ts";
import { VOCAB } from "../architectures/models.ts";

const EOS = 1;
const CTX_LEN = 128;

interface Opened extends LoadedEngine {
  /** The events of a request, up to its last. @param onEvent called with each */
  ask(options: Partial<SamplingOptions>, more?: Partial<SequenceRequest>): Promise<SequenceEvent[]>;
  /** The ids of all requests, in the order of their events. */
  readonly order: number[];
  readonly embedded: EmbedEvent[];
}

let folder = "";
const engines = new Map<string, Opened>();
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "hearth-diffusion-engine-"));
  for (const name of ["llada", "dream"]) {
    await writeGguf(join(folder, `${name}.gguf`), makeDiffusionModel(name));
    engines.set(name, await open(name));
  }
});
afterAll(async () => {
  for (const { engine } of engines.values()) await engine.close();
  await rm(folder, { recursive: true });
});

async function open(name: string): Promise<Opened> {
  const listeners = new Map<number, (event: SequenceEvent) => void>();
  const order: number[] = [];
  const embedded: EmbedEvent[] = [];
  const loaded = await loadEngine(join(folder, `${name}.gguf`), {
    backend: simdBackend,
    loop: systemLoop(),
    open: mapFile,
    ctxLen: CTX_LEN,
    slots: 2,
    chunk: 64,
    threads: 1,
    precise: false,
    cacheDir: undefined,
    emit(events) {
      for (const event of events) {
        order.push(event.id);
        listeners.get(event.id)?.(event);
      }
    },
    onEmbed: (event) => embedded.push(event),
  });
  let last = 0;
  const ask: Opened["ask"] = (options, more = {}) => {
    const { promise, resolve } = Promise.withResolvers<SequenceEvent[]>();
    const id = ++last;
    const events: SequenceEvent[] = [];
    listeners.set(id, (event) => {
      events.push(event);
      if (event.kind === "done" || event.kind === "error") resolve(events);
    });
    const wanted = { ...SAMPLING_DEFAULTS, temperature: 0, seed: 5, num_predict: 32, ...options };
    void loaded.engine.submit({ id, prompt: [{ kind: "ids", ids: PROMPT }], options: wanted, shift: true, ...more });
    return promise;
  };
  return { ...loaded, ask, order, embedded };
}

const textOf = (events: readonly SequenceEvent[]): string =>
  events.flatMap((event) => (event.kind === "text" ? [event.text] : [])).join("");
const doneOf = (events: readonly SequenceEvent[]) => {
  const last = events.at(-1)!;
  if (last.kind !== "done") throw new Error(JSON.stringify(last));
  return last;
};

/** The likeliest tokens, by the reference backend and without a separate head, up to the end token. */
async function expectedIds(name: string, how: { steps: number; block: number; byEntropy: boolean }): Promise<number[]> {
  const gguf = openGguf(join(folder, `${name}.gguf`));
  const program = loadProgram(gguf);
  const session = await cpuBackend.load(program, {
    ctxLen: CTX_LEN,
    slots: 1,
    precise: true,
    threads: 1,
    cacheDir: undefined,
  });
  const denoising = new Denoising({
    prompt: PROMPT,
    length: 32,
    traits: program.diffusion!,
    passes: planPasses({ length: 32, ...how }),
    choose: (logits) => logits.indexOf(Math.max(...logits)),
    rank: rankBy(how.byEntropy ? "entropy" : "confidence", () => 0),
  });
  while (!denoising.done) {
    const logits = await session.run([{ slot: 0, start: 0, tokens: denoising.tokens, logits: "all" }]);
    for (const position of denoising.masks) {
      const row = denoising.rowOf(position) * VOCAB;
      denoising.consider(position, logits.slice(row, row + VOCAB));
    }
    denoising.finishPass();
  }
  session.close();
  gguf.close();
  const ids = [...denoising.tokens];
  const end = ids.indexOf(EOS, PROMPT.length);
  return end < 0 ? ids : ids.slice(0, end + 1);
}

test.each([
  ["llada", {}, { steps: 0, block: 32, byEntropy: false }],
  ["llada", { diffusion_steps: 8, diffusion_block_length: 8 }, { steps: 8, block: 8, byEntropy: false }],
  ["llada", { diffusion_steps: 5, diffusion_block_length: 0 }, { steps: 5, block: 0, byEntropy: false }],
  ["dream", {}, { steps: 0, block: 0, byEntropy: true }],
  ["dream", { diffusion_algorithm: "confidence", diffusion_steps: 6 }, { steps: 6, block: 0, byEntropy: false }],
] as const)("%s with %j answers with the tokens of its whole program", async (name, options, how) => {
  const { tokens, statistics, reason } = doneOf(await engines.get(name)!.ask(options));
  const expected = await expectedIds(name, how);
  expect([...tokens]).toEqual(expected);
  expect(reason).toBe(expected.at(-1) === EOS ? "stop" : "length");
  expect(statistics).toMatchObject({ promptEvalCount: PROMPT.length, evalCount: expected.length - PROMPT.length });
  expect(statistics.promptEvalNs).toBeGreaterThan(0);
});

test("a diffusion model reports its architecture, its abilities and its mask", () => {
  const { info, program } = engines.get("llada")!;
  expect(info).toMatchObject({ arch: "llada", embedsOnly: false, canFill: false });
  expect(program.diffusion?.mask).toBe(MASK);
});

test("the text of an answer is sent in order, block by block, before the answer ends", async () => {
  const options = { ignore_eos: true, num_predict: 40, diffusion_block_length: 8 };
  const events = await engines.get("llada")!.ask(options);
  expect(events[0]!.kind).toBe("prompt");
  expect(events.filter(({ kind }) => kind === "text").length).toBeGreaterThanOrEqual(5);
  const { tokens, reason } = doneOf(events);
  expect([tokens.length - PROMPT.length, reason]).toEqual([40, "length"]);
  const shown = engines.get("llada")!.tokenizer.detokenize([...tokens.subarray(PROMPT.length)], { special: false });
  expect(textOf(events)).toBe(shown);
});

test("the same seed gives the same answer, and another seed another answer", async () => {
  const { ask } = engines.get("llada")!;
  const drawn = async (seed: number): Promise<string> =>
    textOf(await ask({ seed, temperature: 1.5, ignore_eos: true, diffusion_algorithm: "random" }));
  const first = await drawn(3);
  expect(await drawn(3)).toBe(first);
  expect(await drawn(4)).not.toBe(first);
});

test("an answer ends before a stop string, at num_predict, or at the end of the context", async () => {
  const { ask } = engines.get("llada")!;
  const whole = textOf(await ask({ ignore_eos: true }));
  const stop = whole.slice(12, 18);
  const stopped = await ask({ ignore_eos: true, stop: [stop] });
  expect(textOf(stopped)).toBe(whole.slice(0, whole.indexOf(stop)));
  expect(doneOf(stopped)).toMatchObject({ reason: "stop", stopSequence: stop });
  const empty = await ask({ num_predict: 0 });
  expect([textOf(empty), doneOf(empty).reason, empty[0]!.kind]).toEqual(["", "length", "prompt"]);
  const filled = doneOf(await ask({ num_predict: -2, ignore_eos: true, diffusion_steps: 2 }));
  expect([filled.tokens.length, filled.reason]).toEqual([CTX_LEN, "length"]);
  const usual = doneOf(await ask({ num_predict: -1, ignore_eos: true, diffusion_steps: 2 }));
  expect(usual.tokens.length).toBe(CTX_LEN); // 256 do not fit
});

test("a mask is never chosen, even if logit_bias prefers it", async () => {
  const { tokens } = doneOf(await engines.get("llada")!.ask({ ignore_eos: true, logit_bias: { [MASK]: 1000 } }));
  expect(tokens.length).toBe(PROMPT.length + 32);
  expect([...tokens]).not.toContain(MASK);
});

test("requests take turns, and a third request waits for one of two slots", async () => {
  const { ask, order } = engines.get("llada")!;
  const options = { ignore_eos: true, diffusion_block_length: 4 };
  order.length = 0;
  const answers = await Promise.all([ask(options), ask(options), ask(options)]);
  const [first, second, third] = answers.map((events) => events[0]!.id);
  expect(new Set(answers.map(textOf)).size).toBe(1);
  expect(order.indexOf(second!)).toBeLessThan(order.lastIndexOf(first!));
  expect(order.indexOf(third!)).toBeGreaterThan(order.lastIndexOf(first!));
});

test("a cancelled request sends no more events", async () => {
  const { ask, engine, order } = engines.get("llada")!;
  const events = await ask({ num_predict: 1 });
  const id = events[0]!.id + 1;
  order.length = 0;
  void ask({ ignore_eos: true, num_predict: 100 });
  engine.cancel(id);
  await ask({ num_predict: 1 });
  expect(order).not.toContain(id);
  expect([engine.active, engine.busySlots]).toEqual([0, 0]);
});

test.each([
  [{ format: "json" }, "a format or JSON schema"],
  [{ format: { type: "object" } }, "a format or JSON schema"],
  [{ logprobs: 2 }, "logprobs"],
  [{ promptLogprobs: 0 }, "logprobs"],
] as const)("%j is refused by name", async (more, what) => {
  const [failure] = await engines.get("dream")!.ask({}, more);
  expect(failure).toMatchObject({ kind: "error", code: "bad_request" });
  expect(failure!.kind === "error" && failure!.message).toContain(`does not support ${what}`);
});

test("a prompt without room for an answer is refused unless it may be cut", async () => {
  const { ask } = engines.get("llada")!;
  const ids = Int32Array.from({ length: CTX_LEN + 50 }, (_, i) => 2 + (i % 60));
  const prompt = [{ kind: "ids", ids } as const];
  const [failure] = await ask({}, { prompt, truncate: false });
  expect(failure).toMatchObject({ kind: "error", code: "bad_request" });
  const { truncated, tokens } = doneOf(await ask({ ignore_eos: true, diffusion_steps: 4 }, { prompt }));
  expect([truncated, tokens.length]).toEqual([true, CTX_LEN]);
});

test("a diffusion model embeds texts", async () => {
  const { engine, embedded } = engines.get("dream")!;
  engine.embed({ id: 900, texts: [PROMPT] });
  while (embedded.length === 0) await Bun.sleep(5);
  expect(embedded[0]).toMatchObject({ kind: "embedded", id: 900, tokens: PROMPT.length });
});
