/** Models that share a GPU: fake runners of 8 layers, each of which takes a byte there. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { resolve } from "node:path";
import type { PoolModel } from "../../../src/runtime/processes/load-message.ts";
import { Pool, type Lease } from "../../../src/runtime/processes/pool.ts";
import { RunnerProcess } from "../../../src/runtime/processes/runner-process.ts";

setDefaultTimeout(30_000);

const NONE = { go: undefined, prefersGo: undefined };
const COMMAND = [process.execPath, resolve(import.meta.dir, "../fake-runner.ts"), "gpu"];
const [first, second, third, fourth, fifth] = ["first", "second", "third", "fourth", "fifth"].map(
  (name): PoolModel => ({
    name,
    digest: "0".repeat(64),
    path: `/${name}`,
    adapters: [],
    weightBytes: 1,
    template: NONE,
  }),
) as [PoolModel, PoolModel, PoolModel, PoolModel, PoolModel];

let pool: Pool | undefined;
afterEach(() => pool?.close(0));

/** A GPU with room for this many layers; undefined: unknown. */
function makeGpu(gpuMemory: number | undefined, more: { numParallel?: "auto"; maxQueue?: number } = {}): void {
  const spawn = { command: COMMAND, env: { PATH: process.env["PATH"] }, loadTimeoutMs: 20_000 };
  pool = new Pool({
    backend: "webgpu",
    ctxLen: 8,
    numParallel: 1,
    maxLoaded: 9,
    maxQueue: 4,
    keepAliveMs: 60_000,
    cacheDir: undefined,
    freeBytes: () => 1e12,
    gpuMemory,
    start: (load, signal) => RunnerProcess.start(load, spawn, signal),
    ...more,
  });
}

/** Loads a model that stays in use until its lease is released. */
const use = (model: PoolModel, num_gpu = -1): Promise<Lease> =>
  pool!.acquire(model, { options: { num_gpu }, keepAliveMs: undefined, signal: new AbortController().signal });

/** Loads a model and leaves it idle. */
const load = async (model: PoolModel, num_gpu?: number): Promise<void> => (await use(model, num_gpu)).release();

/** Loaded models: bytes on the GPU by name. */
const onGpu = (): Record<string, number> =>
  Object.fromEntries(pool!.loaded().map(({ name, vramBytes }) => [name, vramBytes]));

test("an idle model is evicted before layers of a new model stay on the CPU", async () => {
  makeGpu(10);
  await load(first);
  await load(second);
  expect(onGpu()).toEqual({ second: 8 });
  expect(pool!.activity().events).toMatchObject({ load: 2, unload: 1, evict: 1 });
});

test("a model in use keeps its memory, and a new model gets the rest", async () => {
  makeGpu(10);
  const lease = await use(first);
  await load(second);
  expect(onGpu()).toEqual({ first: 8, second: 2 });
  lease.release();
});

test("models that fit beside each other stay loaded", async () => {
  makeGpu(16);
  await load(first);
  await load(second);
  expect(onGpu()).toEqual({ first: 8, second: 8 });
});

test("the pool evicts the fewest models, the longest idle first, and none without layers on the GPU", async () => {
  makeGpu(12);
  await load(first, 0);
  await load(second, 4);
  await load(third, 4);
  await load(fourth, 4); // now it is full
  expect(onGpu()).toEqual({ first: 0, second: 4, third: 4, fourth: 4 });
  await load(fifth);
  expect(onGpu()).toEqual({ first: 0, fourth: 4, fifth: 8 });
});

test("options.num_gpu evicts idle models to fit its layers, and is refused if they do not fit beside a model in use", async () => {
  makeGpu(10);
  await load(first);
  const lease = await use(second, 7);
  expect(onGpu()).toEqual({ second: 7 });
  await expect(use(third, 4)).rejects.toMatchObject({ code: "too_large", message: "4 of 8 layers: room for 3" });
  expect(onGpu()).toEqual({ second: 7 });
  lease.release();
});

test("a model larger than the GPU is split after all idle models are evicted", async () => {
  makeGpu(5);
  await load(first, 3);
  await load(second);
  expect(onGpu()).toEqual({ second: 5 });
});

test("a runner that chose its number of sequences runs that many requests, and the queue holds the next", async () => {
  makeGpu(10, { numParallel: "auto", maxQueue: 1 }); // the fake runner chooses five
  await load(first);
  const leases = await Promise.all(Array.from({ length: 6 }, () => use(first)));
  expect(pool!.activity()).toMatchObject({ running: 5, waiting: 1 });
  await expect(use(first)).rejects.toMatchObject({ code: "busy" });
  for (const lease of leases) lease.release();
});
