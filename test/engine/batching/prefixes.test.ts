/**
 * Stored prefixes besides slots: more chats than slots continue from their cache, within a bound, with the same
 * answers.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtemp, readdir, rm, stat, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import type { Checkpoint, KvBlocks } from "../../../src/engine/program/kept-slots.ts";
import type { PromptSegment } from "../../../src/engine/batching/prompt.ts";
import type { SnapshotStore } from "../../../src/engine/formats/snapshots.ts";
import { openSnapshots } from "../../../src/engine/formats/files/snapshots.ts";
import { makePrefixCache, type PrefixCache } from "../../../src/engine/batching/prefix-cache.ts";
import { makePool } from "../../../src/engine/batching/prefix-pool.ts";
import { makeBlocks } from "./blocks.ts";
import { END, expectedText, hashNext, makeBench, type Next } from "./fakes.ts";

const endless = { slots: 2, ctxLen: 400, blocks: true };

describe.each([false, true])("recurrent: %p", (recurrent) => {
  test("each turn of ten chats on two slots evaluates only its new text", async () => {
    const { engine, ask } = makeBench({ ...endless, recurrent });
    const chats = Array.from({ length: 10 }, (_, i) => `chat ${i}, which has a beginning of its own. `);
    for (let turn = 0; turn < 3; turn++) {
      for (const [i, chat] of chats.entries()) {
        const { text, prompt } = await ask(chat);
        expect(text).toBe(expectedText(chat, 8));
        // the last turn is cached, except its last token, which was not evaluated, and the rest of a block
        if (turn > 0) expect(prompt!.tokens - prompt!.cached).toBeLessThan(recurrent ? 40 : 36);
        chats[i] = `${chat}${text} And what about turn ${turn}? `;
      }
    }
    await engine.close();
  });

  test("prompts with the same beginning share its cache", async () => {
    const { engine, ask } = makeBench({ ...endless, recurrent });
    const system = "You are a machine that answers questions, all of them, in few words. ";
    const cached: number[] = [];
    for (let i = 0; i < 6; i++) {
      const { text, prompt } = await ask(`${system}${i}: what is it?`);
      expect(text).toBe(expectedText(`${system}${i}: what is it?`, 8));
      cached.push(prompt!.cached);
    }
    expect(cached[0]).toBe(0);
    if (!recurrent) for (const count of cached.slice(1)) expect(count).toBeGreaterThanOrEqual(system.length);
    await engine.close();
  });

  test("many clients with random cancellations get the answers of single requests", async () => {
    const { engine, ask } = makeBench({ slots: 3, ctxLen: 200, blocks: true, recurrent, prefixBytes: 40_000 });
    const asked: Promise<void>[] = [];
    for (let i = 0; i < 60; i++) {
      const prompt = `${"shared beginning of all ".repeat(i % 3)}prompt ${i % 13} ${"x".repeat(i % 17)}`;
      const id = 1000 + i;
      if (i % 5 === 2) {
        void ask(prompt, {}, { id });
        await Bun.sleep(0);
        engine.cancel(id);
      } else asked.push(ask(prompt).then(({ text }) => expect(text).toBe(expectedText(prompt, 8))));
      if (i % 7 === 0) await Promise.all(asked);
    }
    await Promise.all(asked);
    expect(engine.busySlots).toBe(0);
    await engine.close();
  });
});

describe.each([false, true])("snapshots, recurrent: %p", (recurrent) => {
  const chats = Array.from({ length: 5 }, (_, i) => `chat ${i}, which has a beginning of its own. `);
  let root = "";
  beforeEach(async () => void (root = await mkdtemp(join(tmpdir(), "hearth-prefixes-"))));
  afterEach(() => rm(root, { recursive: true }));
  const start = (prefixBytes = 1e6) => {
    const snapshots = openSnapshots({ root, scope: "", bytesMax: 1e7 });
    return makeBench({ ...endless, recurrent, snapshots, prefixBytes });
  };

  test("a new process continues chats from the snapshots of the last one", async () => {
    const first = start();
    const texts: string[] = [];
    for (const chat of chats) texts.push(`${chat}${(await first.ask(chat)).text} And now? `);
    await first.engine.close();
    const second = start();
    for (const chat of texts) {
      const { text, prompt } = await second.ask(chat);
      expect(text).toBe(expectedText(chat, 8));
      expect(prompt!.tokens - prompt!.cached).toBeLessThan(recurrent ? 40 : 30);
    }
    await second.engine.close();
  });

  // the session with recurrent states takes ids only
  test.skipIf(recurrent)(
    "a new process continues a chat about an image, and reuses none of it for another image",
    async () => {
      const asked = (value: number): PromptSegment[] => [
        { kind: "ids", ids: new Int32Array(40).fill(65) },
        {
          kind: "media",
          media: { hash: `image ${value}`, rows: 60, vectors: new Float32Array(60).fill(value), isTwoWay: false },
        },
        { kind: "ids", ids: new Int32Array(20).fill(66) },
      ];
      const first = start();
      const { text } = await first.ask("", {}, { prompt: asked(3) });
      await first.engine.close();
      const second = start();
      const cached: number[] = [];
      for (const value of [4, 3]) {
        const again = await second.ask("", {}, { prompt: asked(value) });
        cached.push(again.prompt!.cached);
        expect(again.text === text).toBe(value === 3);
      }
      expect(cached[0]).toBeLessThanOrEqual(40);
      expect(cached[1]).toBeGreaterThan(80);
      await second.engine.close();
    },
  );

  test("prefixes without room in memory are loaded from snapshots", async () => {
    const { engine, ask } = start(3000);
    for (const chat of chats) await ask(chat);
    for (const chat of chats) {
      const { text, prompt } = await ask(`${chat}Next`);
      expect(text).toBe(expectedText(`${chat}Next`, 8));
      expect(prompt!.cached).toBeGreaterThan(20);
    }
    await engine.close();
  });

  test("prefixes with damaged or missing files are evaluated again", async () => {
    const first = start();
    for (const chat of chats) await first.ask(chat);
    await first.engine.close();
    const second = start();
    const folder = join(root, (await readdir(root))[0]!);
    for (const [i, file] of (await readdir(folder)).entries()) {
      const path = join(folder, file);
      if (i % 3 === 0) await truncate(path, (await stat(path)).size - 3);
      else if (i % 3 === 1) await rm(path);
    }
    await Bun.sleep(0);
    for (const chat of chats) expect((await second.ask(`${chat}Next`)).text).toBe(expectedText(`${chat}Next`, 8));
    await second.engine.close();
  });
});

test("a stored prefix is copied from its file to a slot, and takes no memory in the cache", async () => {
  const root = await mkdtemp(join(tmpdir(), "hearth-prefixes-"));
  const { blocks, slots } = makeBlocks(4);
  const make = (): PrefixCache => {
    return makePrefixCache({ blocks, bytesMax: 1e6, snapshots: openSnapshots({ root, scope: "", bytesMax: 1e7 }) });
  };
  const tokens = Array.from({ length: 28 }, (_, i) => i % 9);
  const first = make();
  await first.ready; // listing removes what it takes for a remnant: a block that is being written
  await save(first, slots, tokens);
  expect(first.bytes).toBeGreaterThan(0);
  await first.close();
  const second = make();
  await second.ready;
  slots[1] = [];
  expect((await second.load(second.match(tokens, 28), 1)).length).toBe(28);
  expect(slots[1]).toEqual(tokens);
  expect(second.bytes).toBe(0);
  await rm(root, { recursive: true });
});

test("a prefix cache of no bytes keeps nothing", async () => {
  const { engine, ask } = makeBench({ ...endless, prefixBytes: 0 });
  for (const name of ["one", "two", "six"]) await ask(`${name} is the prompt here`);
  expect((await ask("one is the prompt here")).prompt!.cached).toBe(0);
  await engine.close();
});

test("a failed run leaves no prefix behind", async () => {
  let fails = false;
  const { engine, session, ask } = makeBench({ ...endless, slots: 1 });
  const { run } = session;
  session.run = (batch) => (fails ? Promise.reject(new Error("no")) : run(batch));
  await ask("this prompt is evaluated well");
  fails = true;
  await ask("that prompt fails on its way, all of it");
  fails = false;
  await ask("something else");
  expect((await ask("that prompt fails on its way, all of it")).prompt!.cached).toBe(0);
  expect((await ask("this prompt is evaluated well")).prompt!.cached).toBeGreaterThan(20);
  await engine.close();
});

test("tokens that a shift moved are not stored", async () => {
  const { engine, ask } = makeBench({ ...endless, slots: 1, ctxLen: 64 });
  const { text } = await ask("a beginning of forty letters and no more", { num_predict: 100, num_keep: 8 });
  await ask("something else");
  const again = `a beginning of forty letters and no more${text.slice(0, 15)}`;
  const { prompt, text: more } = await ask(again, { num_predict: 4 });
  expect(prompt!.cached).toBeLessThanOrEqual(8);
  expect(more).toBe(expectedText(again, 4));
  await engine.close();
});

test("a repeated prompt is reused after an answer that ended at once", async () => {
  const next: Next = (tokens) => (tokens.length > 30 ? END : hashNext(tokens));
  const { engine, ask } = makeBench({ ...endless, slots: 1, next });
  const prompt = "a prompt of some more than thirty tokens";
  await ask(prompt);
  await ask("other");
  expect((await ask(prompt)).prompt).toMatchObject({ tokens: prompt.length, cached: prompt.length - 2 });
  await engine.close();
});

function save(
  cache: PrefixCache,
  slots: number[][],
  tokens: readonly number[],
  checkpoints: Checkpoint[] = [],
): Promise<void> {
  slots[0] = [...tokens];
  return cache.save(0, tokens, checkpoints);
}

test("property: a match is a saved prefix, a load gives its tokens, and the cache stays within its bound", async () => {
  const text = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 40 });
  const scripts = fc.array(fc.tuple(text, text), { minLength: 1, maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(scripts, fc.integer({ min: 1, max: 20 }), async (script, rooms) => {
      const { blocks, slots } = makeBlocks(4);
      const cache = makePrefixCache({ blocks, bytesMax: rooms * 1100, snapshots: undefined });
      for (const [saved, asked] of script) {
        await save(cache, slots, saved);
        expect(cache.bytes).toBeLessThanOrEqual(rooms * 1100);
        const match = cache.match(asked, asked.length);
        slots[1] = [];
        await cache.load(match, 1);
        expect(slots[1].slice(0, match.length)).toEqual(asked.slice(0, match.length));
        expect(slots[1].length).toBeGreaterThanOrEqual(match.length);
      }
    }),
    { numRuns: 200 },
  );
});

test("prefixes share the blocks of their beginning, and the least recently used block is dropped first", async () => {
  const { blocks, slots } = makeBlocks(32);
  const cache = makePrefixCache({ blocks, bytesMax: 8000, snapshots: undefined });
  const beginning = Array.from({ length: 64 }, (_, i) => i);
  const behind = (n: number): number[] => [...beginning, ...Array.from({ length: 32 }, () => n)];
  await save(cache, slots, behind(100));
  const one = cache.bytes;
  await save(cache, slots, behind(101));
  expect(cache.bytes - one).toBe(one / 3);
  const lengths = (): number[] => [100, 101, 102, 103, 104, 105].map((n) => cache.match(behind(n), 96).length);
  for (const n of [102, 103]) await save(cache, slots, behind(n));
  expect(lengths()).toEqual([96, 96, 96, 96, 64, 64]);
  await cache.load(cache.match(behind(100), 96), 1);
  await save(cache, slots, behind(104));
  await save(cache, slots, behind(105));
  expect(lengths()).toEqual([96, 64, 96, 96, 96, 96]);
});

test("a prefix with checkpoints ends at one of them", async () => {
  const { blocks, slots } = makeBlocks(8, {
    pack: () => Uint8Array.of(1),
    unpack: (length) => ({ length, bytes: 100 }),
  });
  const cache = makePrefixCache({ blocks, bytesMax: 1e6, snapshots: undefined });
  const tokens = Array.from({ length: 30 }, (_, i) => i);
  await save(
    cache,
    slots,
    tokens,
    [10, 21].map((length) => ({ length, bytes: 100 })),
  );
  expect(cache.match(tokens, 30)).toMatchObject({ length: 21 });
  expect((await cache.load(cache.match(tokens, 20), 1)).checkpoints).toEqual([{ length: 10, bytes: 100 }]);
  expect(cache.match([...tokens.slice(0, 20), 99], 21)).toMatchObject({ length: 10 });
  expect(cache.match(tokens.slice(0, 9), 9)).toMatchObject({ length: 0, path: [] });
});

test("a saved prefix stays within the bound of the cache, and leaves memory free", async () => {
  const { blocks, slots } = makeBlocks(32);
  const tokens = Array.from({ length: 320 }, (_, i) => i);
  const most = { bytes: 0, blocks: 0 };
  const free = { bytes: 2 ** 40 };
  const make = (bytesMax: number, snapshots?: SnapshotStore): PrefixCache => {
    const read: KvBlocks["read"] = (...what) => {
      most.bytes = Math.max(most.bytes, cache.bytes);
      most.blocks++;
      return blocks.read(...what);
    };
    const cache = makePrefixCache({ blocks: { ...blocks, read }, bytesMax, snapshots, freeBytes: () => free.bytes });
    return cache;
  };
  const bounded = make(3500);
  await save(bounded, slots, tokens);
  expect(bounded.match(tokens, 320).length).toBe(96); // its beginning
  expect(most.blocks).toBe(4); // the last is one too many
  const stored: number[] = [];
  const snapshots: SnapshotStore = {
    list: async () => [],
    read: () => undefined,
    write: (_, [bytes]) => void stored.push(bytes!.length),
    remove: () => {},
    touch: () => {},
    flush: async () => {},
  };
  const storing = make(3500, snapshots);
  await save(storing, slots, tokens);
  expect(stored).toHaveLength(10); // all of it
  expect(most.bytes).toBeLessThanOrEqual(3500);
  free.bytes = 128 * 2 ** 20 + 70;
  const short = make(1e6);
  await save(short, slots, tokens);
  expect(short.match(tokens, 320).length).toBe(64); // two blocks of 32 bytes
});

test("prefixes whose snapshots the store may have evicted do not pile up", async () => {
  const { blocks, slots } = makeBlocks(4);
  const there = new Set<string>();
  const snapshots: SnapshotStore = {
    list: async () => [],
    read: () => undefined,
    write: ({ name }) => void there.add(name),
    remove: (name) => void there.delete(name),
    touch: () => {},
    flush: async () => {},
  };
  const cache = makePrefixCache({ blocks, bytesMax: 3000, snapshots, storedMax: 20 });
  const prompts = Array.from({ length: 50 }, (_, n) => Array.from({ length: 8 }, (_, i) => n * 8 + i));
  for (const prompt of prompts) await save(cache, slots, prompt);
  expect(there.size).toBeLessThanOrEqual(22); // two more are in memory
  const lengths = prompts.map((prompt) => cache.match(prompt, 8).length);
  expect(lengths.slice(-10)).toEqual(Array.from({ length: 10 }, () => 8)); // the latest
  expect(lengths.slice(0, 30)).toEqual(Array.from({ length: 30 }, () => 0));
});

test("a request with adapters whose prefixes are not kept leaves nothing behind", async () => {
  const { blocks } = makeBlocks(4);
  const pool = makePool({ blocks, bytesMax: 3000, snapshots: undefined });
  const asked = Array.from({ length: 100 }, (_, i) => new WeakRef(pool.roots(`[["a.gguf",${i / 100}]]`)));
  await Bun.sleep(0); // references are weak from the next turn on
  Bun.gc(true);
  expect(asked.filter((list) => list.deref()).length).toBeLessThan(10);
  expect(pool.roots("")).toEqual([]);
});
