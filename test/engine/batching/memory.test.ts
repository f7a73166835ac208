/**
 * Prompts with an image that is a memory: its row and all rows after it attend to it, those before it do not, however
 * they are cut into runs, cached, drafted or mixed with others.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import { loadOptionsFor } from "../../../src/engine/backends/small.ts";
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";
import { loadEngine, type LoadedEngine } from "../../../src/engine/batching/load.ts";
import { layOut, type PromptSegment } from "../../../src/engine/batching/prompt.ts";
import type { SequenceEvent, SequenceRequest } from "../../../src/engine/batching/sequence.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { mapFile } from "../../../src/engine/formats/files/map.ts";
import { openSnapshots } from "../../../src/engine/formats/files/snapshots.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import type { Backend, Session } from "../../../src/engine/program/backend.ts";
import { SAMPLING_DEFAULTS } from "../../../src/engine/text/sampling/options.ts";
import { memoryOf } from "../../conformance/memory-cases.ts";
import { makeModel, VOCAB } from "../architectures/models.ts";
import { remembered, hashNext, makeBench, type Next } from "./fakes.ts";

const ids = (text: string): PromptSegment => ({ kind: "ids", ids: Int32Array.from(new TextEncoder().encode(text)) });

const media = (hash: string, memory: Float32Array, token: number): PromptSegment => ({
  kind: "media",
  media: { hash, rows: 1, vectors: new Float32Array(), isTwoWay: false, memory, token },
});

/** Ends an answer of the model in code. */
const END = 1;

/** The token of an image. */
const IMAGE = 33;

describe("an engine", () => {
  const image = (value: number): PromptSegment => media(`image ${value}`, Float32Array.of(value), IMAGE);
  const asked = (value: number, more = " what is it?"): PromptSegment[] => [ids("look: "), image(value), ids(more)];

  /** The answer of a model without any cache. */
  function expected(prompt: readonly PromptSegment[], count: number, next: Next = hashNext): string {
    const rows: number[] = [];
    let more = 0;
    for (const part of prompt) {
      if (part.kind === "media") more = remembered(part.media.memory!);
      for (const id of part.kind === "ids" ? part.ids : [IMAGE]) rows.push(id + more);
    }
    const said: number[] = [];
    while (said.length < count) {
      said.push(next(rows));
      rows.push(said.at(-1)! + more);
    }
    return new TextDecoder().decode(Uint8Array.from(said));
  }

  test("answers a repeated or another image as without a cache", async () => {
    const { engine, ask } = makeBench({ slots: 1, chunk: 8 });
    const cached: number[] = [];
    for (const value of [3, 3, 4, 3]) {
      const { text, prompt, end } = await ask("", {}, { prompt: asked(value) });
      expect(text).toBe(expected(asked(value), 8));
      cached.push(prompt!.cached);
      expect(end.kind === "done" && [...end.tokens]).not.toContain(IMAGE); // a context has no images
    }
    expect(cached).toEqual([0, 17, 6, 6]);
    const text = [ids("look: and say more about it")];
    expect((await ask("", {}, { prompt: text })).text).toBe(expected(text, 8));
    await engine.close();
  });

  test.each(["", "a", "abcdefgh", "abcdefghi", "abcdefghijklmnop"])(
    "evaluates no run across the row of an image after '%s'",
    async (before) => {
      for (const after of ["", "z", "zyxwvutsrqponm"]) {
        const prompt = [...(before === "" ? [] : [ids(before)]), image(5), ...(after === "" ? [] : [ids(after)])];
        const { engine, ask, session } = makeBench({ slots: 1, chunk: 8 });
        for (let time = 0; time < 2; time++) expect((await ask("", {}, { prompt })).text).toBe(expected(prompt, 8));
        for (const { start, tokens, memory } of session.inputs) {
          const end = start + tokens.length;
          expect(memory === undefined).toBe(end <= before.length);
          if (before.length > 1 && end <= before.length) expect(tokens.length).toBeGreaterThan(1);
        }
        await engine.close();
      }
    },
  );

  test("answers many requests at once, with a prefix cache, runs in parts and too little memory for all", async () => {
    const { engine, ask, session } = makeBench({
      slots: 3,
      ctxLen: 200,
      chunk: 8,
      blocks: true,
      verifies: true,
      growth: true,
      kvBytes: 200,
      prefixBytes: 2000,
      partsOf: () => 2,
    });
    const prompts = Array.from({ length: 24 }, (_, i) =>
      i % 4 === 0 ? [ids(`look: ${i} text only`)] : asked(i % 3, ` and say more, ${i % 5}`),
    );
    const all = await Promise.all(prompts.map((prompt) => ask("", { num_predict: 60 }, { prompt })));
    expect(all.map(({ text }) => text)).toEqual(prompts.map((prompt) => expected(prompt, 60)));
    expect(session.released.length).toBeGreaterThan(0);
    await engine.close();
  });

  test("drafts from earlier text with rows that attend to the image", async () => {
    let now = 0;
    const next: Next = (rows) => 97 + (rows.length % 7) + (rows.at(-1)! > 1000 ? 1 : 0);
    const loop = { ...systemLoop(), nowNs: () => now };
    const onRun = (rows: number): void => void (now += (20 + 0.01 * rows) * 1e6);
    const { engine, ask, session } = makeBench({ ctxLen: 400, verifies: true, next, loop, onRun });
    const prompt = asked(3);
    const { text } = await ask("", { num_predict: 100 }, { prompt });
    expect(text).toBe(expected(prompt, 100, next));
    const drafted = session.inputs.filter((rows) => rows.drafted);
    expect(drafted.length).toBeGreaterThan(2);
    expect(drafted.every(({ memory }) => memory?.id === "image 3")).toBe(true);
    await engine.close();
  });

  test("evaluates an image and the text after it in parts, even for a single request", async () => {
    let parts = 0;
    const { engine, ask } = makeBench({ slots: 1, chunk: 32, partsOf: () => Math.min(1, ++parts) });
    const text = [ids("a text without an image")];
    expect((await ask("", {}, { prompt: text })).text).toBe(expected(text, 8));
    expect(parts).toBe(0);
    expect((await ask("", {}, { prompt: asked(3) })).text).toBe(expected(asked(3), 8));
    expect(parts).toBe(13); // its row and the question
    await engine.close();
  });

  test("refuses two images", async () => {
    const { engine, ask } = makeBench({ slots: 1 });
    const { end } = await ask("", {}, { prompt: [...asked(1), image(2)] });
    expect(end).toMatchObject({ kind: "error", code: "bad_request", message: "prompt: expected one image, got 2" });
    await engine.close();
  });
});

describe("Llama 3.2 Vision", () => {
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "hearth-memory-"));
    await writeGguf(join(folder, "text.gguf"), makeModel("mllama"));
    const metadata = { "general.architecture": "clip", "clip.has_vision_encoder": true };
    await writeGguf(join(folder, "eyes.gguf"), { metadata, tensors: [] });
  });
  afterAll(() => rm(folder, { recursive: true }));

  const SIZES = { threads: 1, precise: false, cacheDir: undefined, slots: 2, ctxLen: 128 };
  const prefix = Int32Array.from({ length: 70 }, (_, i) => (i * 7 + 3) % VOCAB);
  const pictures = { A: memoryOf("A", 9, 64), B: memoryOf("B", 5, 64) };
  const shows = (name: "A" | "B", end: readonly number[]): PromptSegment[] => [
    { kind: "ids", ids: prefix.subarray(0, 7) },
    media(name, pictures[name].rows, IMAGE),
    { kind: "ids", ids: Int32Array.of(...prefix, ...end) },
  ];

  interface Asked {
    readonly tokens: readonly number[];
    /** Each token's, with two others. */
    readonly logprobs: readonly number[];
    readonly cached: number;
  }

  interface Opened extends LoadedEngine {
    ask(prompt: readonly PromptSegment[], more?: Partial<SequenceRequest>): Promise<Asked>;
  }

  async function open(backend: Backend, { eyes = true, keeps = false } = {}): Promise<Opened> {
    const listeners = new Map<number, (event: SequenceEvent) => void>();
    const loaded = await loadEngine(join(folder, "text.gguf"), {
      ...SIZES,
      backend,
      loop: systemLoop(),
      open: mapFile,
      chunk: 16,
      cacheMemory: 1e7,
      vision: eyes ? { projector: join(folder, "eyes.gguf") } : undefined,
      ...(keeps && {
        snapshots: (layout) => openSnapshots({ root: join(folder, "kept"), scope: layout, bytesMax: 1e8 }),
      }),
      emit: (events) => events.forEach((event) => listeners.get(event.id)?.(event)),
      onEmbed: () => {},
    });
    let last = 0;
    const ask: Opened["ask"] = (prompt, more = {}) => {
      const { promise, resolve, reject } = Promise.withResolvers<Asked>();
      const id = ++last;
      const logprobs: number[] = [];
      let cached = 0;
      listeners.set(id, (event) => {
        if (event.kind === "text") {
          for (const each of event.logprobs ?? []) logprobs.push(each.logprob, ...each.top.map((top) => top.logprob));
        } else if (event.kind === "prompt") ({ cached } = event);
        else if (event.kind === "done") resolve({ tokens: [...event.tokens].slice(-12), logprobs, cached });
        else if (event.kind === "error") reject(new Error(event.message));
      });
      const options = { ...SAMPLING_DEFAULTS, temperature: 0, num_predict: 12, ignore_eos: true };
      void loaded.engine.submit({ id, prompt, options, shift: true, logprobs: 2, ...more });
      return promise;
    };
    return { ...loaded, ask };
  }

  /** The answer of a session that reads the prompt in two runs. */
  async function reference(prompt: readonly PromptSegment[]): Promise<number[]> {
    const gguf = openGguf(join(folder, "text.gguf"));
    const program = loadProgram(gguf);
    const session = await simdBackend.load(program, loadOptionsFor(program, { ...SIZES, precise: true }));
    const best = async (rows: Parameters<Session["run"]>[0][number]): Promise<number> => {
      const logits = await session.run([rows]);
      logits[END] = -Infinity;
      return logits.indexOf(Math.max(...logits));
    };
    const { ids: keys, media: placed } = layOut(prompt);
    const first = placed[0]!.first;
    const memory = { id: "own", rows: placed[0]!.media.memory! };
    const tokens = keys.map((id) => (id < 0 ? IMAGE : id));
    await session.run([{ slot: 0, start: 0, tokens: tokens.slice(0, first), logits: "none" }]);
    const said = [await best({ slot: 0, start: first, tokens: tokens.slice(first), memory, logits: "last" })];
    while (said.length < 12) {
      const start = tokens.length + said.length - 1;
      said.push(await best({ slot: 0, start, tokens: Int32Array.of(said.at(-1)!), memory, logits: "last" }));
    }
    session.close();
    gguf.close();
    return said;
  }

  test("answers with the tokens of its program, and with others for another image", async () => {
    const { engine, ask } = await open(simdBackend);
    const [a, b] = [await ask(shows("A", [9])), await ask(shows("B", [9]))];
    expect(a.tokens).toEqual(await reference(shows("A", [9])));
    expect(b.tokens).toEqual(await reference(shows("B", [9])));
    expect(a.tokens).not.toEqual(b.tokens);
    await engine.close();
  });

  test("one image in two conversations, beside another one, gives the bits that each has alone", async () => {
    const { engine, ask } = await open(simdBackend);
    const prompts = [shows("A", [9]), shows("A", [11, 12]), shows("B", [9]), [shows("A", [])[2]!]];
    const alone: Asked[] = [];
    for (const prompt of prompts) alone.push(await ask(prompt));
    const bits = ({ tokens, logprobs }: Asked) => ({ tokens, logprobs });
    expect(alone[0]!.logprobs.length).toBe(36);
    await engine.close();
    const other = await open(simdBackend);
    const together = await Promise.all(prompts.map((prompt) => other.ask(prompt)));
    expect(together.map(bits)).toEqual(alone.map(bits));
    const again = await Promise.all(prompts.map((prompt) => other.ask(prompt)));
    expect(again.map(bits)).toEqual(alone.map(bits));
    for (const { cached } of again) expect(cached).toBeGreaterThan(60);
    await other.engine.close();
  });

  test("a prefix with an image outlives the process, and serves no other image", async () => {
    const first = await open(simdBackend, { keeps: true });
    const before = await first.ask(shows("A", [9]));
    await first.engine.close();
    const second = await open(simdBackend, { keeps: true });
    const [other, again] = [await second.ask(shows("B", [9])), await second.ask(shows("A", [9]))];
    expect(again).toEqual({ ...before, cached: 77 }); // the prompt has 79 rows
    expect(other.cached).toBeLessThan(8);
    expect(other.tokens).toEqual(await reference(shows("B", [9])));
    await second.engine.close();
  });

  test("answers texts as a model without images on a backend without cross attention", async () => {
    const lacking: Backend = { ...simdBackend, name: "lacking", missing: ({ memory }) => (memory ? ["remember"] : []) };
    const texts = [{ kind: "ids", ids: prefix }] as const;
    const answers: Asked[] = [];
    const sizes: number[] = [];
    for (const [backend, eyes] of [
      [simdBackend, true],
      [lacking, true],
      [simdBackend, false],
    ] as const) {
      const { engine, ask, info, program, projector } = await open(backend, { eyes });
      const sees = backend === simdBackend && eyes;
      expect([program.memory !== undefined, projector !== undefined]).toEqual([sees, sees]);
      expect(info.visionMissing).toBe(backend === lacking ? "images need another backend than 'lacking'" : undefined);
      sizes.push(info.bytes.kv);
      answers.push(await ask(texts));
      await engine.close();
    }
    expect(answers).toEqual([answers[0]!, answers[0]!, answers[0]!]);
    expect(sizes[1]).toBe(sizes[2]!);
    expect(sizes[0]! - sizes[1]!).toBeGreaterThan(2 * 4 * 1601 * 2 * 32 * 4); // two slots: four tiles of float32 rows
  });
});
