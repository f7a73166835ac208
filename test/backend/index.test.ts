/** The choice among backends, and what becomes of a model that a GPU has no room for. */
import { expect, test } from "bun:test";
import { AppError } from "../../src/base/errors.ts";
import type { Backend } from "../../src/backend/backend.ts";
import { chooseWithoutGpu, loadOrGoWithout } from "../../src/backend/index.ts";

/** Opens a device, as the WebGPU backend does. */
const gpu = { name: "webgpu", unavailable: () => undefined, refuses: async () => undefined } as unknown as Backend;
const full = new AppError("too_large", "no room");

/** Loads nothing: says which backends it was asked to load with, the first of which fails. */
async function tried(parts: { name: string; chosen: Backend }, error: Error): Promise<string[]> {
  const names: string[] = [];
  return loadOrGoWithout(parts, async ({ name }) => {
    names.push(name);
    if (names.length === 1) throw error;
    return names;
  });
}

test("auto: a model that the GPU has no room or no kernel for runs without it", async () => {
  const without = chooseWithoutGpu().name;
  expect(without).not.toBe("webgpu");
  expect(await tried({ name: "auto", chosen: gpu }, full)).toEqual(["webgpu", without]);
  const unread = new AppError("unsupported", "block type");
  expect(await tried({ name: "auto", chosen: gpu }, unread)).toEqual(["webgpu", without]);
});

test("a GPU asked for by name, a bad file and a backend without a device fail as they are", async () => {
  await expect(tried({ name: "webgpu", chosen: gpu }, full)).rejects.toBe(full);
  const bad = new AppError("bad_file", "cut short");
  await expect(tried({ name: "auto", chosen: gpu }, bad)).rejects.toBe(bad);
  await expect(tried({ name: "auto", chosen: chooseWithoutGpu() }, full)).rejects.toBe(full);
});
