/** Starts Hearth like a user would, on a free loopback port with a temporary home, and stops it afterwards. */
import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installSeeded, modelsFolder } from "./seeded-model.ts";
import { fromSource, HEARTH, shareMachineCache } from "../program.ts";
import { BUN_ENV } from "../bun-env.ts";

const START_TIMEOUT_MS = 60_000;

export interface Hearth {
  readonly url: string;
  readonly pid: number;
  readonly home: string;
  /** The line that the server prints once it listens. */
  readonly greeting: string;
  readonly process: Bun.Subprocess;
  /** Lines of the log so far. */
  log(): string[];
  /** POSTs JSON. */
  post(path: string, body: unknown, signal?: AbortSignal): Promise<Response>;
  /** Pids of the runners of loaded models. */
  runnerPids(): Promise<number[]>;
  /** Numbers of requests that run, and that wait. */
  activity(): Promise<{ running: number; waiting: number }>;
  stop(): Promise<void>;
}

/** Environment that isolates a test's Hearth from the user's own. The tests of a run share what a machine keeps. */
export function isolatedEnv(home: string, more: Record<string, string> = {}): Record<string, string> {
  shareMachineCache(home);
  return {
    PATH: process.env["PATH"] ?? "",
    HOME: home,
    ...(process.platform === "win32" && { USERPROFILE: home, TEMP: tmpdir() }),
    HEARTH_HOST: "127.0.0.1:0",
    HEARTH_HOME: join(home, ".hearth"),
    ...BUN_ENV,
    HEARTH_SPARE_RUNNER: "false", // it would be one more child process
    ...more,
  };
}

export interface StartOptions {
  /** Settings on top of the isolated ones. */
  readonly env?: Record<string, string>;
  /** The caller's folder, to be used again. */
  readonly home?: string;
  /** True: the server installs its model itself, which then draws its answers. */
  readonly isBare?: boolean;
  /** True: the model gives one answer to everything. For turns, whose prompts contain the time. */
  readonly isSteady?: boolean;
  /** The program of another source tree. */
  readonly main?: string;
}

/** Starts it with the embedded model, which has a fixed seed. */
export async function startHearth(options: StartOptions = {}): Promise<Hearth> {
  const home = options.home ?? mkdtempSync(join(tmpdir(), "hearth-test-"));
  if (!options.isBare) await installSeeded(modelsFolder(home, options.env), options);
  const child = Bun.spawn([...(options.main ? fromSource(options.main) : HEARTH), "serve"], {
    env: isolatedEnv(home, options.env),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const out = collectLines(child.stdout);
  const err = collectLines(child.stderr);
  const greeting = await firstLine(child, out, err);
  const url = /https?:\/\/\S+/.exec(greeting)?.[0];
  if (!url) throw new Error(`no address in '${greeting}'`);
  return {
    url,
    pid: child.pid,
    home,
    greeting,
    process: child,
    log: () => [...err],
    post: (path, body, signal) =>
      fetch(url + path, { method: "POST", body: JSON.stringify(body), ...(signal ? { signal } : {}) }),
    runnerPids: () => startedChildPids(child.pid),
    activity: async () =>
      ((await (await fetch(`${url}/health`)).json()) as { models: { running: number; waiting: number } }).models,
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
      // Windows frees the files of a process a moment after its end
      if (!options.home) rmSync(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
    },
  };
}

/** Runs the command line to its end. */
export async function runHearth(
  args: string[],
  options: { env?: Record<string, string>; home: string; stdin?: string; onStart?: (pid: number) => void },
): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = Bun.spawn([...HEARTH, ...args], {
    env: isolatedEnv(options.home, options.env),
    stdin: new Blob([options.stdin ?? ""]),
    stdout: "pipe",
    stderr: "pipe",
  });
  options.onStart?.(child.pid);
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, stdout, stderr };
}

/** Child processes of a process, from /proc. */
export async function childPids(pid: number): Promise<number[]> {
  const text = await Bun.file(`/proc/${pid}/task/${pid}/children`).text();
  return text.trim() === "" ? [] : text.trim().split(" ").map(Number);
}

/** Children that run their own program: stopping a child before that would block its parent, which waits for it. */
async function startedChildPids(pid: number): Promise<number[]> {
  const commandOf = (each: number): Promise<string> => readFile(`/proc/${each}/cmdline`, "utf8").catch(() => ""); // gone
  const own = await commandOf(pid);
  const pids = await childPids(pid);
  const commands = await Promise.all(pids.map(commandOf));
  return pids.filter((_, i) => commands[i] !== own && commands[i]!.includes("\0runner")); // not self-tests of kernels
}

/** True if a process exists and is not a zombie. */
export async function isAlive(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => ""); // gone
  return status !== "" && !/\) [ZX] /.test(status);
}

const LOOK_MS = 20;
/** Tests may set the clock. */
const elapsedMs = performance.now.bind(performance);

/** Waits until `check` holds, for `ms`; longer on a machine that gives this process little of that time. */
export async function eventually(check: () => boolean | Promise<boolean>, ms = 20_000): Promise<boolean> {
  const deadline = elapsedMs() + ms;
  for (let looks = 0; looks < ms / LOOK_MS || elapsedMs() < deadline; looks++) {
    if (await check()) return true;
    await Bun.sleep(LOOK_MS);
  }
  return check();
}

/** The objects of an NDJSON answer. */
export async function* ndjson(response: Response): AsyncGenerator<Record<string, any>> {
  if (!response.body) return;
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield JSON.parse(line);
  }
  if (rest !== "") yield JSON.parse(rest);
}

function collectLines(stream: ReadableStream<Uint8Array>): string[] {
  const lines: string[] = [];
  void (async () => {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of stream) {
      const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = parts.pop() ?? "";
      lines.push(...parts);
    }
    if (rest !== "") lines.push(rest);
  })();
  return lines;
}

async function firstLine(child: Bun.Subprocess, out: string[], err: string[]): Promise<string> {
  const started = await eventually(() => out.length > 0 || child.exitCode !== null, START_TIMEOUT_MS);
  const line = out[0];
  if (started && line !== undefined) return line;
  child.kill("SIGKILL");
  throw new Error(`hearth did not start (exit code ${child.exitCode}): ${err.join("\n")}`);
}
