/** Searches for the fastest kernels in a process with a driver; tune.test.ts starts it and reads its output. */
import { chooseTuning, tuningsOf } from "../../../../src/engine/backends/webgpu/choose-tuning.ts";
import { tuningFile } from "../../../../src/engine/backends/host/tuning-file.ts";
import { dawn } from "../../../../src/engine/backends/host/dawn.ts";
import { openDevice } from "../../../../src/engine/backends/webgpu/device.ts";
import { tuningKey } from "../../../../src/engine/backends/webgpu/tunings.ts";
import { searchTunings } from "../../../../src/engine/backends/webgpu/tune.ts";

const [what, cacheDir = "", ...without] = process.argv.slice(2);
const device = await openDevice(dawn(), { without });
const shape = { quant: "q4_0", dim: 1024 } as const;
const store = tuningFile(cacheDir);
const options = { ctxLen: 1, slots: 1, threads: 1, cacheDir, tunings: store, precise: false };

async function work(): Promise<unknown> {
  switch (what) {
    case "search":
      return searchTunings(device, shape, { budgetMs: 1500 });
    case "hurry":
      return searchTunings(device, shape, { budgetMs: 0 });
    case "resume":
      return tuningsOf(device, shape, { store, budgetMs: 1500 });
    case "cached":
      return tuningsOf(device, shape, { store, budgetMs: 0 });
    case "key":
      return tuningKey(device, shape);
    case "choose":
      return chooseTuning(device, shape, options);
    default:
      throw new Error(`${what}: expected search, hurry, resume, cached, key or choose`);
  }
}

console.log(JSON.stringify(await work()));
process.exit();
