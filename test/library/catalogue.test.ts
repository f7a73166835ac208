/** The catalogue that ships with the program, and which of its models fit a machine. */
import { describe, expect, test } from "bun:test";
import { FAMILIES } from "../../bench/models/families.ts";
import { fitOf, readCatalogue, suggestionsOf, type MachineFacts } from "../../src/library/catalogue.ts";
import { displayName, parseName } from "../../src/library/store/name.ts";

const GB = 1e9;
const machine = (total: number, available: number, more: Partial<MachineFacts> = {}): MachineFacts => ({
  memory: { total: total * GB, available: available * GB },
  disk: { free: 500 * GB },
  ...more,
});

describe("the list of models", () => {
  test("has chat models from 0.3 to 65 GB, each once, by their names in the store", async () => {
    const { models } = await readCatalogue();
    const names = models.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(names.map((name) => displayName(parseName(name)))).toEqual(names);
    const sizes = models.filter(({ purpose }) => purpose === "chat").map(({ size }) => size);
    expect([Math.min(...sizes), Math.max(...sizes)]).toEqual([0.292 * GB, 65 * GB]);
  });

  test("has models that need more memory than their download, and that either embed or complete", async () => {
    for (const { name, size, memory, purpose, capabilities } of (await readCatalogue()).models) {
      expect([name, memory > size, memory < size * 1.3 + GB]).toEqual([name, true, true]);
      expect([name, capabilities.includes("embedding")]).toEqual([name, purpose === "embedding"]);
      expect([name, capabilities.includes("completion")]).toEqual([name, purpose !== "embedding"]);
    }
  });

  test("has only families that Hearth can run", async () => {
    const known = Object.values(FAMILIES)
      .map(({ name }) => name.toLowerCase())
      .join("\n");
    for (const { title } of (await readCatalogue()).models) {
      const [family = ""] = title.toLowerCase().split(/[ -]/);
      expect([title, known.includes(family)]).toEqual([title, true]);
    }
  });
});

describe("fit of a model on a machine:", () => {
  const model = { size: 5 * GB, memory: 6 * GB };
  test.each([
    [machine(16, 12), false, { fits: "yes" }],
    [machine(16, 4), false, { fits: "tight", reason: "needs 6.0 GB of memory; 4.0 GB are free now" }],
    [machine(6.5, 6), false, { fits: "no", reason: "needs 6.0 GB of memory; this machine has 6.5 GB" }],
    [machine(4, 3, { gpuMemory: 8 * GB }), false, { fits: "yes" }],
    [
      machine(16, 12, { disk: { free: 2 * GB } }),
      false,
      { fits: "no", reason: "needs 5.0 GB of disk; 2.0 GB are free" },
    ],
    [machine(16, 12, { disk: { free: 2 * GB } }), true, { fits: "yes" }],
    [machine(16, 12, { disk: { free: null } }), false, { fits: "yes" }],
  ] as const)("%j, installed: %p", (facts, isInstalled, expected) => {
    expect(fitOf(model, facts, isInstalled)).toEqual(expected);
  });
});

describe("suggestions", () => {
  const suggested = async (facts: MachineFacts, installed: readonly string[] = []): Promise<string[]> =>
    suggestionsOf(
      (await readCatalogue()).models.map((model) => {
        const isInstalled = installed.includes(model.name);
        return { ...model, installed: isInstalled, ...fitOf(model, facts, isInstalled) };
      }),
    );

  test("are three models that fit, the middle one first", async () => {
    expect(await suggested(machine(24, 21))).toEqual(["qwen3:8b", "gemma3:4b", "gpt-oss:20b"]);
    expect(await suggested(machine(8, 6))).toEqual(["llama3.2:3b", "gemma3:1b", "gemma3:4b"]);
    expect(await suggested(machine(128, 120))).toEqual(["gpt-oss:20b", "qwen3:8b", "gpt-oss:120b"]);
  });

  test("leave out installed models and those that cannot fit", async () => {
    expect(await suggested(machine(24, 21), ["qwen3:8b"])).toEqual(["gemma3:4b", "llama3.2:3b", "gpt-oss:20b"]);
    expect(await suggested(machine(1, 0.8))).toEqual(["gemma3:270m"]);
    expect(await suggested(machine(0.5, 0.4))).toEqual([]);
  });

  test("include models that would fit if other programs freed memory", async () => {
    expect(await suggested(machine(16, 1))).toEqual(["gemma3:1b", "gemma3:270m", "llama3.2:3b"]);
  });
});
