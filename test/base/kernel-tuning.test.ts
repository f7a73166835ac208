/** The setting for the GPU's kernels. */
import { expect, test } from "bun:test";
import { fits, formatTuning, parseKernels, PLAIN } from "../../src/base/kernel-tuning.ts";

test("a setting is a word, or a list of differences from the plain kernels", () => {
  expect(parseKernels("auto")).toBe("auto");
  expect(parseKernels("exact")).toBe("exact");
  expect(parseKernels("plain")).toEqual(PLAIN);
  expect(parseKernels("threads=256, columns=1 ,tile=64x128,packed")).toEqual({
    ...PLAIN,
    threads: 256,
    columns: 1,
    tileRows: 64,
    tileColumns: 128,
    packed: true,
  });
});

test.each([
  "",
  "threads",
  "threads=48",
  "threads=064",
  "columns=16",
  "tile=64",
  "tile=16x64",
  "tile=64x",
  "f32",
  "exact,f16",
])("'%s' is no setting of kernels", (text) => expect(parseKernels(text)).toBeUndefined());

test("a tuning is printed as text that parses to the same tuning", () => {
  for (const text of ["plain", "threads=32,columns=8,packed,f16", "tile=128x64,loads16,double,matrix"]) {
    const tuning = parseKernels(text);
    expect(parseKernels(formatTuning(tuning as typeof PLAIN))).toEqual(tuning); // a list makes a tuning
  }
});

test("a tuning fits only if its workgroups stay within the device's limits", () => {
  const limits = { maxComputeInvocationsPerWorkgroup: 256, maxComputeWorkgroupStorageSize: 16_384 };
  const device = { limits, subgroups: false };
  expect(fits(PLAIN, device)).toBe(true);
  expect(fits({ ...PLAIN, threads: 256, columns: 8 }, device)).toBe(false);
  expect(fits({ ...PLAIN, threads: 256, columns: 8 }, { limits, subgroups: true })).toBe(true);
  expect(fits({ ...PLAIN, tileRows: 64, tileColumns: 128 }, device)).toBe(false);
  expect(fits({ ...PLAIN, tileRows: 64, tileColumns: 128, f16: true }, device)).toBe(true);
  expect(fits({ ...PLAIN, double: true }, device)).toBe(false);
  expect(fits({ ...PLAIN, tileRows: 64, matrix: true }, device)).toBe(true); // 14 KiB
  expect(fits({ ...PLAIN, tileRows: 64, matrix: true, double: true }, device)).toBe(false);
  const more = { limits: { ...limits, maxComputeWorkgroupStorageSize: 24_576 }, subgroups: true };
  expect(fits({ ...PLAIN, double: true }, more)).toBe(true);
  expect(fits({ ...PLAIN, tileRows: 64, matrix: true, double: true }, more)).toBe(true);
  expect(fits({ ...PLAIN, tileRows: 128, matrix: true, double: true }, more)).toBe(false);
  expect(
    fits({ ...PLAIN, tileRows: 64 }, { limits: { ...limits, maxComputeInvocationsPerWorkgroup: 64 }, subgroups: true }),
  ).toBe(false);
});
