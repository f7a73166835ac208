/** Features of processors as reported by three systems. */
import { describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { ofArm, ofCpuid, ofLinux, withCpuid, type Cpuid } from "../../../src/engine/backends/host/processor.ts";
import { levelsHere, libraryFolder } from "../../../src/engine/backends/host/simd-library.ts";

describe.skipIf(process.platform !== "linux" || process.arch !== "x64")("the processor of this machine", () => {
  test("reports by CPUID the features that Linux lists", () => {
    const asked = withCpuid(join(libraryFolder(), "linux-x64-avx2.so"), ofCpuid);
    const listed = ofLinux(readFileSync("/proc/cpuinfo", "utf8"));
    expect(asked.halves).toBe(listed.halves);
    expect(asked.has.size).toBeGreaterThan(0);
    for (const feature of asked.has) expect(listed.has, feature).toContain(feature);
    const everything: Cpuid = () => [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff];
    for (const feature of ofCpuid(everything).has)
      expect(asked.has.has(feature), feature).toBe(listed.has.has(feature));
  });
});

/** A processor with every feature on a system that saves these registers. */
const saving =
  (registers: number): Cpuid =>
  (leaf) =>
    leaf === 0xffffffff ? [registers, 0, 0, 0] : [leaf === 7 ? 1 : 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff];

test("features whose registers the system does not save cannot be used", () => {
  const [none, ymm, zmm] = [0x3, 0x7, 0xe7].map((registers) => ofCpuid(saving(registers)).has);
  expect(["sse4_1", "avx2", "avx512f"].map((name) => none!.has(name))).toEqual([true, false, false]);
  expect(["sse4_1", "avx2", "avx512f"].map((name) => ymm!.has(name))).toEqual([true, true, false]);
  expect(["sse4_1", "avx2", "avx512f"].map((name) => zmm!.has(name))).toEqual([true, true, true]);
});

test("a processor without CPUID leaf 7 has the features of leaf 1", () => {
  const { has, halves } = ofCpuid((leaf) => (leaf === 0 ? [6, 0x756e6547, 0, 0] : [0, 0, 1 << 19, 0]));
  expect([...has]).toEqual(["sse4_1"]);
  expect(halves).toBe(true);
});

test("the features of arm64 are requested by the names that macOS and Windows have for them", () => {
  const asked: unknown[] = [];
  const { has } = ofArm(({ mac, windows }) => {
    asked.push(mac, windows);
    return !mac.endsWith("I8MM");
  });
  expect(asked).toContain("hw.optional.arm.FEAT_DotProd");
  expect(asked).toContain(43);
  expect([...has].toSorted()).toEqual(["asimd", "asimddp", "asimdhp", "fphp"]);
});

test("a missing or damaged library hides no level", async () => {
  const scratch = mkdtempSync(join(tmpdir(), "hearth-levels-"));
  const names = (folder?: string): string[] => levelsHere(folder).map(({ level }) => level);
  for (const file of new Set(levelsHere().map((level) => basename(level.file)))) {
    const [gone, damaged] = ["gone", "damaged"].map((how) => join(scratch, `${file}-${how}`)) as [string, string];
    for (const folder of [gone, damaged]) cpSync(libraryFolder(), folder, { recursive: true });
    rmSync(join(gone, file));
    writeFileSync(join(damaged, file), "damaged");
    expect({ file, levels: names(gone) }).toEqual({ file, levels: names() });
    expect({ file, levels: names(damaged) }).toEqual({ file, levels: names() });
  }
  await rm(scratch, { recursive: true, force: true }).catch(() => {}); // Windows still holds the libraries it opened
});
