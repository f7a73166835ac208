/** Searches for the fastest kernels in a process with a driver; tune.test.ts starts it and reads its output. */
import { formatTuning, parseKernels, PLAIN, type Tuning } from "../../../../src/base/kernel-tuning.ts";
import type { LoadOptions } from "../../../../src/engine/program/backend.ts";
import { chooseTuning, tuningsOf } from "../../../../src/engine/backends/webgpu/choose-tuning.ts";
import { tuningFile } from "../../../../src/engine/backends/host/tuning-file.ts";
import { dawn } from "../../../../src/engine/backends/host/dawn.ts";
import { TOGGLES } from "./swiftshader.ts";
import { openDevice, type Device } from "../../../../src/engine/backends/webgpu/device.ts";
import { tuningKey } from "../../../../src/engine/backends/webgpu/tunings.ts";
import { Trial } from "../../../../src/engine/backends/webgpu/trial.ts";
import { checkedOr, searchTunings } from "../../../../src/engine/backends/webgpu/tune.ts";

/** A software adapter takes longer while other tests run than the search allows a GPU. */
const AMPLE_MS = 20_000;
const [what, cacheDir = "", ...without] = process.argv.slice(2); // for `compare`, kernels instead of a folder
const device = await openDevice(dawn(TOGGLES), { without });
const shape = { quant: "q4_0", dim: 1024 } as const;
const store = tuningFile(cacheDir);
const options = { ctxLen: 1, slots: 1, threads: 1, cacheDir, tunings: store, precise: false };

function asHardware(): Device {
  const facts = { ...device.facts, software: false };
  return Object.create(device, {
    facts: { value: facts },
    pipeline: { value: device.pipeline.bind(device) },
    allocate: { value: device.allocate.bind(device) },
    wait: { value: device.wait.bind(device) },
    submit: { value: device.submit.bind(device) },
  }) as Device; // a proxy could not read its private fields
}

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
    case "compare": {
      const trial = await Trial.make(asHardware(), shape, true);
      const tuning = parseKernels(cacheDir) as Tuning; // a list makes a tuning
      return formatTuning(await checkedOr(PLAIN, trial, { tuning, nmseMax: 1e-6 }));
    }
    case "choose as on hardware": {
      const hardware = asHardware();
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
      throw new Error(
        `${what}: expected search, hurry, resume, cached, others, key, compare, choose or choose as on hardware`,
      );
  }
}

console.log(JSON.stringify(await work()));
process.exit();
