/** Searches for the fastest kernels in a process with a driver; tune.test.ts starts it and reads its output. */
import { formatTuning } from "../../../../src/base/kernel-tuning.ts";
import type { LoadOptions } from "../../../../src/engine/program/backend.ts";
import { chooseTuning, tuningsOf } from "../../../../src/engine/backends/webgpu/choose-tuning.ts";
import { tuningFile } from "../../../../src/engine/backends/host/tuning-file.ts";
import { dawn } from "../../../../src/engine/backends/host/dawn.ts";
import { openDevice, type Device } from "../../../../src/engine/backends/webgpu/device.ts";
import { tuningKey } from "../../../../src/engine/backends/webgpu/tunings.ts";
import { searchTunings } from "../../../../src/engine/backends/webgpu/tune.ts";

/** A software adapter beside other tests takes longer than the search allows a GPU. */
const AMPLE_MS = 20_000;
const [what, cacheDir = "", ...without] = process.argv.slice(2);
const device = await openDevice(dawn(), { without });
const shape = { quant: "q4_0", dim: 1024 } as const;
const store = tuningFile(cacheDir);
const options = { ctxLen: 1, slots: 1, threads: 1, cacheDir, tunings: store, precise: false };

async function work(): Promise<unknown> {
  switch (what) {
    case "search":
      return searchTunings(device, shape, { budgetMs: AMPLE_MS });
    case "hurry":
      return searchTunings(device, shape, { budgetMs: 0 });
    case "resume":
      return tuningsOf(device, shape, { store, budgetMs: AMPLE_MS });
    case "cached":
      return tuningsOf(device, shape, { store, budgetMs: 0 });
    case "others":
      return tuningsOf(device, { ...shape, others: ["q6_K", "f32"] }, { store, budgetMs: 0 });
    case "key":
      return tuningKey(device, shape);
    case "choose":
      return chooseTuning(device, shape, options);
    case "choose as on hardware": {
      const facts = { ...device.facts, software: false };
      const hardware = Object.create(device, { facts: { value: facts } }) as Device; // only its properties are read
      const kernelsOf = async (more: Partial<LoadOptions>): Promise<string> =>
        formatTuning(await chooseTuning(hardware, shape, { ...options, ...more }));
      return {
        auto: await kernelsOf({}),
        exact: await kernelsOf({ gpuKernels: "exact" }),
        precise: await kernelsOf({ precise: true }),
        small: await kernelsOf({ small: true }),
      };
    }
    default:
      throw new Error(`${what}: expected search, hurry, resume, cached, others, key, choose or choose as on hardware`);
  }
}

console.log(JSON.stringify(await work()));
process.exit();
