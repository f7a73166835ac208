/**
 * Calls for macOS and Windows: elsewhere they have no effect, and a C library accepts their signatures. Made-up facts
 * stand in for a Mac's.
 */
import { afterAll, expect, test } from "bun:test";
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { availableParallelism, freemem, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { availableMemory, macMemory } from "../../src/base/available-memory.ts";
import { flushDrive, MAC_FACTS, type MacFacts } from "../../src/base/system.ts";
import { preferFastCores } from "../../src/engine/backends/host/fast-cores.ts";
import { macCores } from "../../src/engine/backends/onnx/threads.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-macos-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("flushDrive flushes on macOS only", () => {
  const fd = openSync(join(folder, "file"), "w");
  const isMac = process.platform === "darwin";
  expect([flushDrive(fd), flushDrive(fd, "linux"), flushDrive(fd, "win32")]).toEqual([isMac, false, false]);
  closeSync(fd);
  // Linux's fcntl refuses the command, and every system a closed file
  if (process.platform !== "win32") expect(flushDrive(fd, "darwin")).toBe(false);
});

test.skipIf(process.platform === "darwin")("other systems have no facts of a Mac", () => {
  expect([MAC_FACTS.number("hw.pagesize"), MAC_FACTS.text("hw.model"), macMemory()]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test("preferFastCores has an effect on macOS and Windows only", () => {
  expect(preferFastCores()).toBe(process.platform === "darwin" || process.platform === "win32");
  if (process.platform !== "linux") return;
  // the C library lacks macOS's function, and there is no library of Windows
  expect([preferFastCores("darwin"), preferFastCores("win32")]).toEqual([false, false]);
});

/** Facts of a Mac, in place of this machine's. */
const factsOf = (facts: Readonly<Record<string, number | string>>): MacFacts => ({
  number: (name) => (typeof facts[name] === "number" ? facts[name] : undefined),
  text: (name) => (typeof facts[name] === "string" ? facts[name] : undefined),
});

test.each([
  ["Intel's", { "hw.physicalcpu": 6 }, 6],
  ["of one kind", { "hw.physicalcpu": 8, "hw.perflevel0.physicalcpu": 8, "hw.nperflevels": 1 }, 8],
  ["an M4", { ...kinds(["Performance", 4], ["Efficiency", 6]) }, 4],
  ["an M5", { ...kinds(["Super", 4], ["Efficiency", 6]) }, 4],
  ["an M5 Max", { ...kinds(["Super", 6], ["Performance", 12]) }, 18],
  ["three kinds", { ...kinds(["Super", 2], ["Performance", 8], ["Efficiency", 4]) }, 10],
  ["a kind without a name", { "hw.nperflevels": 2, "hw.perflevel0.physicalcpu": 4, "hw.perflevel1.physicalcpu": 4 }, 4],
])("a Mac's cores count except those named for efficiency: %s", (_, facts, cores) =>
  expect(macCores(factsOf(facts))).toBe(cores),
);

function kinds(...list: readonly (readonly [name: string, cores: number])[]): Record<string, number | string> {
  const facts = list.flatMap(([name, cores], i): [string, number | string][] => [
    [`hw.perflevel${i}.name`, name],
    [`hw.perflevel${i}.physicalcpu`, cores],
  ]);
  return { "hw.nperflevels": list.length, "hw.physicalcpu": 99, ...Object.fromEntries(facts) };
}

test("a Mac's available memory has the files that are in memory, and what can be computed again", () => {
  const pages = { "hw.pagesize": 16384, "vm.page_free_count": 6000, "vm.page_pageable_external_count": 250_000 };
  expect(macMemory(factsOf(pages))).toBe(16384 * 256_000);
  expect(macMemory(factsOf({ ...pages, "vm.page_purgeable_count": 500 }))).toBe(16384 * 256_500);
  for (const missing of Object.keys(pages))
    expect(macMemory(factsOf({ ...pages, [missing]: "no number" }))).toBeUndefined();
});

test.skipIf(process.platform !== "darwin")("this Mac names its memory and its cores", () => {
  expect(availableMemory()).toBeGreaterThan(freemem());
  expect(availableMemory()).toBeLessThan(totalmem());
  expect(macCores()).toBeGreaterThan(0);
  expect(macCores()).toBeLessThanOrEqual(availableParallelism());
});
