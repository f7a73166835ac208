/** A runner started in advance: used once, replaced if it died, ended with its owner. */
import { resolve } from "node:path";
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { RunnerProcess, spawnRunner } from "../../../src/runtime/processes/runner-process.ts";
import { SpareRunner } from "../../../src/runtime/processes/spare-runner.ts";
import { eventually, isAlive } from "../../e2e/hearth.ts";

setDefaultTimeout(20_000);

const command = [process.execPath, resolve(import.meta.dir, "../fake-runner.ts")];
const env = { PATH: process.env["PATH"] };
const load = {
  kind: "load",
  path: "m.gguf",
  adapters: [],
  backend: "fake",
  gpuLayers: undefined,
  gpuMemory: undefined,
  ctxLen: 8,
  slots: 1,
  chunk: 8,
  template: { go: undefined, prefersGo: undefined },
  threads: 0,
  precise: false,
  cacheDir: undefined,
} as const;

const spares: SpareRunner[] = [];
const started: Bun.Subprocess[] = [];
afterEach(() => {
  for (const spare of spares.splice(0)) spare.close();
  for (const child of started.splice(0)) child.kill("SIGKILL");
});

function makeSpare(isIdle: () => boolean = () => true): SpareRunner {
  const spawn = () => {
    const runner = spawnRunner({ command, env });
    started.push(runner.child);
    return runner;
  };
  const spare = new SpareRunner({ spawn, isIdle, delayMs: 5 });
  spares.push(spare);
  return spare;
}

test("a spare runner loads the next model, and the load after that starts another", async () => {
  const spare = makeSpare();
  spare.prepare();
  spare.prepare();
  expect(await eventually(() => started.length > 0)).toBe(true);
  const options = { command, env, loadTimeoutMs: 10_000, take: () => spare.take() };
  const runners = [1, 2].map(() => RunnerProcess.start(load, options, new AbortController().signal));
  const pids = (await Promise.all(runners)).map(({ pid }) => pid);
  expect(pids).toEqual(started.map(({ pid }) => pid));
  expect(new Set(pids).size).toBe(2);
});

test("a spare runner that has died is not used", async () => {
  const spare = makeSpare();
  spare.prepare();
  expect(await eventually(() => started.length === 1)).toBe(true);
  started[0]!.kill("SIGKILL");
  await started[0]!.exited;
  expect(spare.take().child.pid).toBe(started[1]!.pid);
});

test("no spare runner is started while the machine is busy", async () => {
  let [looked, isIdle] = [0, false];
  const spare = makeSpare(() => (looked++, isIdle));
  spare.prepare();
  expect(await eventually(() => looked > 2)).toBe(true);
  expect(started.length).toBe(0);
  isIdle = true;
  expect(await eventually(() => started.length === 1)).toBe(true);
});

test("closing ends the spare runner, and starts no other", async () => {
  const spare = makeSpare();
  spare.prepare();
  expect(await eventually(() => started.length === 1)).toBe(true);
  spare.close();
  spare.prepare();
  await started[0]!.exited;
  expect(await isAlive(started[0]!.pid)).toBe(false);
  await Bun.sleep(30);
  expect(started.length).toBe(1);
});
