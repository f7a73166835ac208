/** Heads that are tried before attention of prompts multiplies subgroup matrices. */
import { expect, test } from "bun:test";
import { PLAIN } from "../../../../src/base/index.ts";
import { withAttention } from "../../../../src/engine/backends/webgpu/choose-attention.ts";
import type { Device } from "../../../../src/engine/backends/webgpu/device.ts";
import type { LoadOptions } from "../../../../src/engine/program/backend.ts";
import { memoryCases } from "../../../conformance/memory-cases.ts";

const limits = { maxComputeInvocationsPerWorkgroup: 256, maxComputeWorkgroupStorageSize: 32_768 };
const adapterInfo = { vendor: "v", architecture: "a", device: "d", description: "" };
const matrix = { type: "f16", m: 16, n: 16, k: 16, width: 32 } as const;
/** Its facts: results that are stored need no more of it. */
const device = {
  facts: { software: false, limits },
  gpu: { adapterInfo },
  subgroups: true,
  matrix,
} as unknown as Device;

test("heads of cross attention are tried before use, in the cache format of memories", async () => {
  const { program } = memoryCases()[0]!; // 4 heads on 2 of 16, twice
  const asked: string[] = [];
  const withRight = async (right: (key: string) => boolean): Promise<boolean> => {
    const read = async (key: string) => [asked.push(key), { faster: true, right: right(key) }][1];
    const tunings = { read, write: async () => {} };
    const sizes = { ctxLen: 64, slots: 1, precise: false, threads: 1, cacheDir: undefined };
    const options: LoadOptions = { ...sizes, tunings, kvType: "q8_0" };
    return (await withAttention(device, PLAIN, { steps: program.steps, options })).attention;
  };
  expect(await withRight(() => true)).toBe(true);
  expect(asked.map((key) => key.split("|").slice(5, -1).join(" "))).toEqual(["4 2 16 16 q8_0/16", "4 2 16 16 f16"]);
  expect(await withRight((key) => !key.includes("|f16|"))).toBe(false);
});
