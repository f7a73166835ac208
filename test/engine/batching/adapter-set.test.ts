/** Sets of adapters: refusals, and prefixes that belong to the adapters that made them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { adapterSet, isLasting, NO_ADAPTERS } from "../../../src/engine/batching/adapter-set.ts";
import { makePrefixCache } from "../../../src/engine/batching/prefix-cache.ts";
import { makeSlots, placePrompt, takeSlot } from "../../../src/engine/batching/slots.ts";
import { openSnapshots } from "../../../src/engine/formats/files/snapshots.ts";
import { makeBlocks } from "./blocks.ts";

const OFFERED = ["/a.gguf", "/b.gguf", "/c.gguf"];
const TOKENS = Array.from({ length: 28 }, (_, i) => i % 9);

describe("a set of adapters", () => {
  test("is in the order of the offer, without adapters of scale 0", () => {
    const set = adapterSet(
      [
        { path: "/c.gguf", scale: -2 },
        { path: "/b.gguf", scale: 0 },
        { path: "/a.gguf", scale: 0.5 },
      ],
      OFFERED,
    );
    expect(set.rows).toEqual([
      { adapter: 0, scale: 0.5 },
      { adapter: 2, scale: -2 },
    ]);
    expect(set.key).toBe(
      JSON.stringify([
        ["/a.gguf", 0.5],
        ["/c.gguf", -2],
      ]),
    );
    for (const none of [undefined, [], [{ path: "/a.gguf", scale: 0 }], [{ path: "/a.gguf", scale: -0 }]]) {
      expect(adapterSet(none, OFFERED)).toEqual({ rows: [], key: NO_ADAPTERS });
    }
  });

  test("is refused for bad scales, unknown or repeated adapters, and more than eight", () => {
    const refusal =
      (path: string, scale: number): (() => unknown) =>
      () =>
        adapterSet([{ path, scale }], OFFERED);
    expect(refusal("/d.gguf", 1)).toThrow("adapter '/d.gguf': the model is loaded without it");
    for (const scale of [NaN, Infinity, -Infinity, 101, -1e300]) {
      expect(refusal("/a.gguf", scale)).toThrow(`adapter scale: expected -100 to 100, got ${scale}`);
    }
    const twice = [0, 1].map(() => ({ path: "/a.gguf", scale: 1 }));
    expect(() => adapterSet(twice, OFFERED)).toThrow("expected each one once");
    const many = Array.from({ length: 9 }, (_, i) => `/${i}.gguf`);
    const all = many.map((path) => ({ path, scale: 1 }));
    expect(() => adapterSet(all, many)).toThrow("expected at most 8 in a request, got 9");
  });

  test("lasts if its files are named by their content", () => {
    const blob = `/blobs/sha256-${"0".repeat(64)}`;
    const keyOf = (...paths: string[]): string =>
      adapterSet(
        paths.map((path) => ({ path, scale: 1 })),
        paths,
      ).key;
    expect([NO_ADAPTERS, keyOf(blob), keyOf(blob, "/a.gguf")].map(isLasting)).toEqual([true, true, false]);
  });
});

test("a slot lends its prefix to prompts with the same adapters only", () => {
  const slots = makeSlots(2);
  takeSlot(slots[0]!, { tokens: TOKENS, adapters: "one", checkpoints: [], order: 1 });
  const reused = (adapters: string): number => placePrompt(slots, TOKENS, { anyLength: true, adapters })!.reused;
  expect(["one", "two", NO_ADAPTERS].map(reused)).toEqual([26, 0, 0]);
  slots[0]!.busy = false;
  expect(["one", "two", NO_ADAPTERS].map(reused)).toEqual([26, 0, 0]);
});

test("the prefix cache separates prefixes by their adapters, in memory and in files", async () => {
  const root = mkdtempSync(join(tmpdir(), "hearth-adapter-prefixes-"));
  const { blocks, slots } = makeBlocks(4);
  const make = () =>
    makePrefixCache({ blocks, bytesMax: 1e6, snapshots: openSnapshots({ root, scope: "", bytesMax: 1e7 }) });
  const [lasting, passing] = [`sha256-${"1".repeat(64)}`, "a.gguf"].map((path) => JSON.stringify([[path, 1]]));
  const first = make();
  slots[0] = TOKENS.slice();
  await first.save(0, TOKENS, [], lasting);
  await first.save(0, TOKENS.slice(0, 12), [], NO_ADAPTERS);
  await first.save(0, TOKENS.slice(0, 20), [], passing);
  const lengths = (cache: typeof first): number[] =>
    [lasting, NO_ADAPTERS, passing, "other"].map((adapters) => cache.match(TOKENS, 28, adapters).length);
  expect(lengths(first)).toEqual([28, 12, 20, 0]);
  await first.close();
  const second = make();
  await second.ready;
  expect(lengths(second)).toEqual([28, 12, 0, 0]);
  await second.close();
  rmSync(root, { recursive: true });
});
