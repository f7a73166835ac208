/** The pool with real runner processes of the embedded model. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { getPriority, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { AppError } from "../../../src/base/errors.ts";
import type { LoadMessage } from "../../../src/engine/runner/messages.ts";
import type { LoadingOptions } from "../../../src/engine/text/sampling/options.ts";
import type { PoolModel, PoolOptions } from "../../../src/runtime/processes/load-message.ts";
import { Pool, type Lease } from "../../../src/runtime/processes/pool.ts";
import { RunnerProcess, spawnRunner } from "../../../src/runtime/processes/runner-process.ts";
import type { StartedRunner } from "../../../src/runtime/processes/spare-runner.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { makeAdapter, shapesOf } from "../../engine/architectures/adapters.ts";
import { encodeGguf, type MemoryModel } from "../../engine/formats/gguf/fixture.ts";
import { eventually, isAlive } from "../../e2e/hearth.ts";
import { RUNNER } from "../../program.ts";
import { BUN_ENV } from "../../bun-env.ts";

setDefaultTimeout(30_000);

const EMBEDDED = resolve(import.meta.dir, "../../../models/hearth/hearth.gguf");
/** The command of a runner that loads nothing. */
const FAKE = [process.execPath, resolve(import.meta.dir, "../fake-runner.ts")];
const fake = { command: FAKE, env: {}, loadTimeoutMs: 20_000 };
const folder = mkdtempSync(join(tmpdir(), "hearth-pool-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Three files, so that the pool sees three models. */
const [first, second, third] = ["first", "second", "third"].map((name): PoolModel => {
  const path = join(folder, `${name}.gguf`);
  const template = { go: undefined, prefersGo: undefined };
  copyFileSync(EMBEDDED, path);
  return { name: `${name}:latest`, digest: "0".repeat(64), path, adapters: [], weightBytes: 1e6, template };
}) as [PoolModel, PoolModel, PoolModel];

let pools: Pool[] = [];
let started: number[] = [];
afterEach(async () => {
  await Promise.all(pools.map((pool) => pool.close(0)));
  pools = [];
  started = [];
});

function makePool(options: Partial<PoolOptions> & { command?: string[]; loadTimeoutMs?: number } = {}): Pool {
  const command = options.command ?? RUNNER;
  const spawn = {
    command,
    env: { PATH: process.env["PATH"], ...BUN_ENV },
    loadTimeoutMs: options.loadTimeoutMs ?? 20_000,
  };
  const pool = new Pool({
    backend: "cpu",
    ctxLen: 128,
    numParallel: 2,
    maxLoaded: undefined,
    maxQueue: 4,
    keepAliveMs: 60_000,
    cacheDir: undefined,
    freeBytes: () => 1e12,
    start: async (load, signal) => {
      const runner = await RunnerProcess.start(load, spawn, signal);
      started.push(runner.pid);
      return runner;
    },
    ...options,
  });
  pools.push(pool);
  return pool;
}

function acquire(
  pool: Pool,
  model: PoolModel,
  more: { keepAliveMs?: number; signal?: AbortSignal } = {},
): Promise<Lease<RunnerProcess>> {
  const { keepAliveMs, signal = new AbortController().signal } = more;
  return pool.acquire(model, { options: {}, keepAliveMs, signal });
}

const names = (pool: Pool): string[] => pool.loaded().map((model) => model.name);

async function failureOf(promise: Promise<unknown>): Promise<AppError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(AppError);
  return error as AppError; // checked just above
}

test("a request without num_ctx gets the context that memory and training allow, and a request for that size reloads nothing", async () => {
  const loads: LoadMessage[] = [];
  const pool = makePool({
    ctxLen: "auto",
    freeBytes: () => 1e9,
    start: (load, signal) => {
      loads.push(load);
      return RunnerProcess.start(load, fake, signal);
    },
  });
  const lease = async (options: LoadingOptions): Promise<void> =>
    (await pool.acquire(first, { options, keepAliveMs: undefined, signal: new AbortController().signal })).release();
  await lease({});
  await lease({ num_ctx: 8 }); // the fake runner's own value
  expect(loads.map(({ ctxLen, cacheMemory }) => [ctxLen, cacheMemory])).toEqual([
    ["auto", (1e9 - 1e6 - 150 * 2 ** 20) / 2],
  ]);
  await lease({ num_ctx: 4 });
  expect(loads.length).toBe(2);
});

test("the list of loaded models has the bytes that a runner reports on a GPU", async () => {
  const pool = makePool({ command: FAKE });
  const lease = await acquire(pool, first);
  expect(pool.loaded()).toMatchObject([{ sizeBytes: 6, vramBytes: 4 }]);
  lease.release();
});

describe("options.num_gpu", () => {
  /** Requests a model with one number after another; returns the index of the runner that each request got. */
  async function runnersOf(pool: Pool, numbers: readonly (number | undefined)[]): Promise<number[]> {
    const used: number[] = [];
    for (const num_gpu of numbers) {
      const options = num_gpu === undefined ? {} : { num_gpu };
      const signal = new AbortController().signal;
      const { runner, release } = await pool.acquire(first, { options, keepAliveMs: undefined, signal });
      used.push(started.indexOf(runner.pid));
      release();
    }
    return used;
  }

  test("another number of layers reloads the model; none or a negative one does not", async () => {
    const pool = makePool({ backend: "auto", command: [...FAKE, "gpu"] });
    const numbers = [undefined, 6, -1, 3, undefined, -1, 3, 8, 99, 0, 0];
    expect(await runnersOf(pool, numbers)).toEqual([0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3]);
  });

  test("no number reloads a model without a GPU, except the first after 0", async () => {
    const pool = makePool({ backend: "auto", command: FAKE });
    expect(await runnersOf(pool, [undefined, 99, 5, 0, 7])).toEqual([0, 0, 0, 0, 0]);
    expect(await runnersOf(makePool({ backend: "auto", command: FAKE }), [0, 99, 0, 5, 0])).toEqual([1, 2, 2, 2, 2]);
    expect(await runnersOf(makePool({ backend: "onnx", command: FAKE }), [0, 99, 3])).toEqual([3, 3, 3]);
  });
});

test("requests for one model share a runner, which ends after keep_alive", async () => {
  const pool = makePool();
  const leases = await Promise.all([acquire(pool, first), acquire(pool, first), acquire(pool, first)]);
  expect(new Set(leases.map((lease) => lease.runner.pid)).size).toBe(1);
  expect(started).toHaveLength(1);
  const last = await acquire(pool, first, { keepAliveMs: 150 });
  for (const lease of [...leases, last]) lease.release();
  expect(names(pool)).toEqual(["first:latest"]);
  expect(await eventually(async () => !(await isAlive(started[0]!)))).toBe(true);
  expect(await eventually(() => names(pool).length === 0)).toBe(true);
});

test("models that share weights but not adapters have a runner each, and are unloaded one by one", async () => {
  const pool = makePool();
  const gguf = openGguf(first.path);
  const [one, two] = [1, 2].map((seed): PoolModel => {
    const path = join(folder, `adapter-${seed}.gguf`);
    const options = { rank: 2, alpha: 2, seed, targets: /blk\.0\.attn_q/ };
    writeFileSync(path, encodeGguf(makeAdapter(shapesOf(gguf), options) as MemoryModel)); // its tensors are in memory
    return { ...first, name: `with-${seed}:latest`, adapters: [path] };
  }) as [PoolModel, PoolModel];
  gguf.close();
  const leases = [];
  for (const model of [first, one, two, one]) leases.push(await acquire(pool, model));
  expect(new Set(leases.map(({ runner }) => runner.pid)).size).toBe(3);
  expect(leases[1]!.runner.pid).toBe(leases[3]!.runner.pid);
  for (const lease of leases) lease.release();
  pool.unload(one);
  expect(await eventually(() => names(pool).length === 2)).toBe(true);
  expect(names(pool).sort()).toEqual(["first:latest", "with-2:latest"]);
});

test("keep_alive 0 ends the runner after its last request", async () => {
  const pool = makePool();
  const [a, b] = [await acquire(pool, first), await acquire(pool, first, { keepAliveMs: 0 })];
  b.release();
  b.release(); // releasing twice counts once
  expect(names(pool)).toEqual(["first:latest"]);
  a.release();
  expect(names(pool)).toEqual([]); // at once: it is about to end
  const again = await acquire(pool, first, { keepAliveMs: 0 });
  expect(again.runner.alive).toBe(true);
  again.release();
});

test("a load beyond the maximum of loaded models evicts an idle one", async () => {
  const pool = makePool({ maxLoaded: 1 });
  (await acquire(pool, first)).release();
  (await acquire(pool, second)).release();
  expect(names(pool)).toEqual(["second:latest"]);
  expect(await isAlive(started[0]!)).toBe(false);
});

test("a busy model is evicted only after its request ends", async () => {
  const pool = makePool({ maxLoaded: 1 });
  const busy = await acquire(pool, first);
  let got = false;
  const waiting = acquire(pool, second).then((lease) => {
    got = true;
    return lease;
  });
  await Bun.sleep(300);
  expect([got, busy.runner.alive]).toEqual([false, true]);
  busy.release();
  (await waiting).release();
  expect(names(pool)).toEqual(["second:latest"]);
});

test("an idle model is evicted before a busy one, even with a longer keep_alive", async () => {
  const pool = makePool({ maxLoaded: 2 });
  const busy = await acquire(pool, first, { keepAliveMs: 1000 });
  (await acquire(pool, second, { keepAliveMs: 100_000 })).release();
  (await acquire(pool, third)).release();
  expect(names(pool).toSorted()).toEqual(["first:latest", "third:latest"]);
  busy.release();
});

test("a model that does not fit in memory beside others evicts them", async () => {
  const pool = makePool({ freeBytes: () => 1000 });
  (await acquire(pool, first)).release();
  (await acquire(pool, second)).release();
  expect(names(pool)).toEqual(["second:latest"]);
});

test("a load's memory is reduced by loaded models' weights in the file cache, and by their caches' full size", async () => {
  const loads: LoadMessage[] = [];
  let free = 1.5e9;
  const pool = makePool({
    freeBytes: () => free,
    start: (load, signal) => {
      loads.push(load);
      return RunnerProcess.start(load, fake, signal);
    },
  });
  const load = async (model: PoolModel): Promise<void> =>
    (await acquire(pool, { ...model, weightBytes: 1e9 })).release();
  await load(first); // 1.5 times its weights would not fit into a share of that
  free = 2e9;
  await load(second);
  expect(names(pool)).toEqual(["second:latest"]);
  free = 4e9;
  await load(third);
  expect(names(pool).toSorted()).toEqual(["second:latest", "third:latest"]);
  const own = 1e9 + 150 * 2 ** 20;
  const [onGpu, kv] = [4, 2]; // the fake runner's values
  expect(loads.map(({ cacheMemory }) => cacheMemory! * 2 + own)).toEqual([1.5e9, 2e9, 4e9 - (1e9 - onGpu) - kv]);
});

test("a load beyond maxQueue is refused with Ollama's error text", async () => {
  const pool = makePool({ maxQueue: 1 });
  const loading = acquire(pool, first);
  const { code, message } = await failureOf(acquire(pool, second));
  expect([code, message]).toEqual(["busy", "server busy, please try again.  maximum pending requests exceeded"]);
  (await loading).release();
});

test("a runner has a lower priority than the server and is killed for memory first", async () => {
  const lease = await acquire(makePool(), first);
  expect(getPriority(lease.runner.pid)).toBe(Math.min(getPriority() + 5, 19));
  const scoreOf = (pid: number): number => Number(readFileSync(`/proc/${pid}/oom_score_adj`, "utf8"));
  if (process.platform === "linux") expect(scoreOf(lease.runner.pid)).toBe(Math.max(500, scoreOf(process.pid)));
  lease.release();
});

test("a load is cancelled once its last waiting client has gone", async () => {
  const spawn = { command: RUNNER, env: { PATH: process.env["PATH"], ...BUN_ENV }, loadTimeoutMs: 20_000 };
  const stopped: number[] = [];
  /** Stops each runner before it reads the message to load: it may not be ready before its clients go. */
  const take = (): StartedRunner => {
    const runner = spawnRunner(spawn);
    process.kill(runner.child.pid, "SIGSTOP");
    stopped.push(runner.child.pid);
    return runner;
  };
  const start: PoolOptions["start"] = async (load, signal) => {
    const runner = await RunnerProcess.start(load, { ...spawn, take }, signal);
    started.push(runner.pid);
    return runner;
  };
  const pool = makePool({ start });
  const abort = new AbortController();
  const gone = failureOf(acquire(pool, first, { signal: abort.signal }));
  expect(await eventually(() => stopped.length === 1)).toBe(true);
  const stays = acquire(pool, first);
  abort.abort();
  process.kill(stopped[0]!, "SIGCONT");
  expect((await gone).code).toBe("cancelled");
  const lease = await stays;
  expect([started, stopped]).toEqual([[lease.runner.pid], [lease.runner.pid]]);
  lease.release();

  const alone = new AbortController();
  const left = failureOf(acquire(pool, second, { signal: alone.signal }));
  expect(await eventually(() => stopped.length === 2)).toBe(true);
  alone.abort();
  expect((await left).code).toBe("cancelled");
  expect(await eventually(async () => !(await isAlive(stopped[1]!)))).toBe(true);
  expect(names(pool)).toEqual(["first:latest"]);
  const again = eventually(() => stopped.length === 3).then(() => process.kill(stopped[2]!, "SIGCONT"));
  (await acquire(pool, second)).release(); // and the model can still be loaded
  await again;
});

test("a request that comes while a cancelled load ends waits for a new load", async () => {
  let loads = 0;
  const pool = makePool({
    start: async (load, signal) => {
      if (loads++ > 0) return RunnerProcess.start(load, fake, new AbortController().signal);
      await new Promise((done) => signal.addEventListener("abort", done));
      await Bun.sleep(50); // like during another model's move off the GPU
      throw new AppError("cancelled", "request canceled");
    },
  });
  const abort = new AbortController();
  const gone = failureOf(acquire(pool, first, { signal: abort.signal }));
  await Bun.sleep(5);
  abort.abort();
  await Bun.sleep(5);
  const next = acquire(pool, first);
  expect((await gone).code).toBe("cancelled");
  (await next).release();
  expect(loads).toBe(2);
});

test("a cancelled load that succeeds late leaves no runner", async () => {
  const runners: RunnerProcess[] = [];
  const pool = makePool({
    start: async (load, signal) => {
      await new Promise((done) => signal.addEventListener("abort", done));
      runners.push(await RunnerProcess.start(load, fake, new AbortController().signal)); // it gets the message too late
      return runners[0]!;
    },
  });
  const abort = new AbortController();
  const gone = failureOf(acquire(pool, first, { signal: abort.signal }));
  await Bun.sleep(5);
  abort.abort();
  expect((await gone).code).toBe("cancelled");
  expect(await eventually(() => runners.length === 1 && !runners[0]!.alive)).toBe(true);
  expect(pool.loaded()).toEqual([]);
});

test("closing refuses waiting requests at once, and lets running ones finish", async () => {
  const pool = makePool({ maxLoaded: 1, command: FAKE });
  const busy = await acquire(pool, first);
  const waits = failureOf(acquire(pool, second)); // waits for the first
  const queues = failureOf(acquire(pool, third));
  await Bun.sleep(20);
  const closed = pool.close(60_000);
  for (const refused of [waits, queues, failureOf(acquire(pool, first))]) {
    expect(await refused).toMatchObject({ code: "busy", message: "the server is shutting down" });
  }
  expect(busy.runner.alive).toBe(true);
  busy.release();
  await closed;
  expect(busy.runner.alive).toBe(false);

  const stuck = makePool({ command: ["sleep", "60"] });
  const loading = failureOf(acquire(stuck, first));
  const alsoLoading = failureOf(acquire(stuck, first));
  await Bun.sleep(20);
  await stuck.close(60_000);
  for (const refused of [loading, alsoLoading]) {
    expect(await refused).toMatchObject({ code: "busy", message: "the server is shutting down" });
  }
});

test("a file that is no model fails that request only", async () => {
  const path = join(folder, "broken.gguf");
  writeFileSync(path, "not a model at all");
  const pool = makePool();
  const { code, message } = await failureOf(acquire(pool, { ...first, path }));
  expect(code).toBe("bad_file");
  expect(message).toContain(path);
  expect(names(pool)).toEqual([]);
  (await acquire(pool, first)).release();
});

test("a runner that sends nothing fails the load after the load timeout", async () => {
  const pool = makePool({ command: ["sleep", "60"], loadTimeoutMs: 200 });
  const { code, message } = await failureOf(acquire(pool, first));
  expect(code).toBe("runner");
  expect(message).toContain("timed out");
});

test("a runner that dies while idle is removed, and the next request starts another", async () => {
  const pool = makePool();
  const lease = await acquire(pool, first);
  lease.release();
  process.kill(lease.runner.pid, "SIGKILL");
  expect(await eventually(() => names(pool).length === 0)).toBe(true);
  const next = await acquire(pool, first);
  expect(next.runner.alive).toBe(true);
  next.release();
});

test("activity counts loads, unloads, evictions, crashes, and running and waiting requests", async () => {
  const pool = makePool({ maxLoaded: 1, numParallel: 1 });
  const [FIRST, images] = ["first:latest", { encoded: 0, reused: 0 }];
  const leases = await Promise.all([acquire(pool, first), acquire(pool, first), acquire(pool, first)]);
  expect(pool.activity()).toEqual({
    running: 1,
    waiting: 2,
    events: { load: 1, unload: 0, evict: 0, crash: 0, hang: 0 },
    hung: [],
    images,
    models: [{ name: FIRST, running: 1, waiting: 2, isLoaded: true, hasAdapters: false, kv: { used: 0, room: 128 } }],
    modelsMax: 1,
  });
  const waiting = acquire(pool, second);
  expect(pool.activity().models.map(({ name, waiting, isLoaded }) => [name, waiting, isLoaded])).toEqual([
    [FIRST, 2, true],
    ["second:latest", 1, false],
  ]);
  for (const lease of leases) lease.release();
  (await waiting).release();
  expect(pool.activity()).toMatchObject({
    running: 0,
    waiting: 0,
    events: { load: 2, unload: 1, evict: 1, crash: 0, hang: 0 },
    hung: [],
    images,
    models: [{ name: "second:latest", running: 0, waiting: 0, isLoaded: true }],
  });
  process.kill(started.at(-1)!, "SIGKILL");
  expect(await eventually(() => pool.activity().events.crash === 1)).toBe(true);
  (await acquire(pool, third, { keepAliveMs: 0 })).release();
  expect(await eventually(() => pool.activity().events.unload === 2)).toBe(true);
});
