/** The memory for models on a GPU where the user sets none. */
import { expect, test } from "bun:test";
import { gpuMemoryHere } from "../../src/cli/gpu-memory.ts";

test("the GPU of an arm64 Mac may use two thirds of its memory; the memory of other GPUs is unknown in advance", () => {
  const total = () => 9000;
  expect(gpuMemoryHere("auto", { platform: "darwin", arch: "arm64", total })).toBe(6000);
  expect(gpuMemoryHere("auto", { platform: "darwin", arch: "x64", total })).toBeUndefined();
  expect(gpuMemoryHere("auto", { platform: "linux", arch: "arm64", total })).toBeUndefined();
  expect(gpuMemoryHere(5, { platform: "darwin", arch: "arm64", total })).toBe(5);
});
