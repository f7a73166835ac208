/** The process of a runner, with a fake inside that answers at once. */
import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { messageOf } from "../../../src/base/errors.ts";
import { RunnerProcess, runnerEnvironment } from "../../../src/runtime/processes/runner-process.ts";
import { SAMPLING_DEFAULTS } from "../../../src/engine/text/sampling/options.ts";
import { childPids, eventually, isAlive } from "../../e2e/hearth.ts";

setDefaultTimeout(20_000);

const FAKE = resolve(import.meta.dir, "../fake-runner.ts");
const forever = new AbortController().signal;

let runner: RunnerProcess | undefined;
afterEach(() => runner?.kill());

async function start(
  loadTimeoutMs: number,
  { args = [], gpuMemory }: { args?: string[]; gpuMemory?: number } = {},
): Promise<RunnerProcess> {
  const load = {
    kind: "load",
    path: "m.gguf",
    adapters: [],
    backend: "fake",
    gpuLayers: gpuMemory === undefined ? undefined : Infinity,
    gpuMemory,
    ctxLen: 8,
    slots: 1,
    chunk: 8,
    template: { go: undefined, prefersGo: undefined },
    threads: 0,
  } as const;
  const spawn = { command: [process.execPath, FAKE, ...args], env: { PATH: process.env["PATH"] }, loadTimeoutMs };
  return (runner = await RunnerProcess.start({ ...load, precise: false, cacheDir: undefined }, spawn, forever));
}

async function ask(runner: RunnerProcess, prompt: string): Promise<string> {
  let text = "";
  const asked = { kind: "text", text: prompt, context: [] } as const;
  const request = { asked, options: SAMPLING_DEFAULTS, shift: true };
  for await (const event of runner.generate(request, forever)) if (event.kind === "text") text += event.text;
  return text;
}

test("a loaded runner may be silent for longer than the load timeout", async () => {
  let loadTimeoutMs = 150; // doubled until this machine can start a process within it
  const load = (): Promise<RunnerProcess> => start(loadTimeoutMs).catch(() => ((loadTimeoutMs *= 2), load()));
  const runner = await load();
  expect(await ask(runner, "hello")).toBe("ok");
  await Bun.sleep(loadTimeoutMs * 1.2);
  expect(await ask(runner, "hello")).toBe("ok");
});

test("a runner starts with the settings of native code, and keeps the user's own", async () => {
  const runner = await start(10_000);
  const own = readFileSync(`/proc/${runner.pid}/environ`, "latin1").split("\0");
  expect(own).toContain("ORT_DISABLE_TELEMETRY=1");
  expect(own).toContain("GLIBC_TUNABLES=glibc.malloc.tcache_count=500");
  expect(runnerEnvironment({ GLIBC_TUNABLES: "own" })["GLIBC_TUNABLES"]).toBe("own");
});

test("a runner that closed its channel is killed, and its requests fail with the signal", async () => {
  const runner = await start(10_000);
  const files = (): number => readdirSync(`/proc/${runner.pid}/fd`).length;
  const before = files();
  const first = ask(runner, "hang up").catch(messageOf);
  expect(await eventually(() => files() < before)).toBe(true);
  await Bun.sleep(100); // until this side notices
  const second = ask(runner, "hello").catch(messageOf);
  const why = "model runner has unexpectedly stopped (signal SIGKILL)";
  expect(await Promise.all([first, second])).toEqual([why, why]);
  expect(await isAlive(runner.pid)).toBe(false);
});

test("a runner whose load failed is killed if it does not end", async () => {
  const before = await childPids(process.pid);
  await expect(start(10_000, { args: ["gpu"], gpuMemory: 1 })).rejects.toThrow("8 of 8 layers: room for 1");
  const isGone = async (): Promise<boolean> => (await childPids(process.pid)).every((pid) => before.includes(pid));
  expect(await eventually(isGone)).toBe(true);
});
