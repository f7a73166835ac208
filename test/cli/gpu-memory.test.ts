/** The memory for models on a GPU where the user sets none. */
import { expect, test } from "bun:test";
import { gpuMemoryHere } from "../../src/cli/gpu-memory.ts";

test("a Mac's GPU takes two thirds of the memory that it shares; other GPUs say themselves what fits", () => {
  const total = () => 9000;
  expect(gpuMemoryHere("auto", { platform: "darwin", arch: "arm64", total })).toBe(6000);
  expect(gpuMemoryHere("auto", { platform: "darwin", arch: "x64", total })).toBeUndefined();
  expect(gpuMemoryHere("auto", { platform: "linux", arch: "arm64", total })).toBeUndefined();
  expect(gpuMemoryHere(5, { platform: "darwin", arch: "arm64", total })).toBe(5);
});
