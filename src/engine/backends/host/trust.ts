/**
 * Chooses the kernel library that model runners may load: the best one that passed its self-test. A child process
 * computes the library's answer, which has to be the known one. Results are kept for each library, system and
 * processor, so that a machine tests a library once.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { cpus, release } from "node:os";
import { join } from "node:path";
import { AppError, linesOf, messageOf } from "../../../base/index.ts";
import { keptFile, type KeptFile } from "./kept-file.ts";
import { damageOf, knownAnswer, levelsHere, libraryFolder, wasmLevel, type Level } from "./simd-library.ts";

/** The parts of a level that the child process needs. */
export type TestedLevel = Pick<Level, "level" | "file" | "features" | "words" | "panelRows">;

/** The child prints it before it opens the library: the time limit begins here. */
export const BEGUN = "begun";

/** The argument after which the program's command line takes a level, as JSON. */
const CHILD_COMMAND = "selftest-child";
const RESULTS_FILE = "cpu-kernels.json";
const PASSED = "passed";

/** Most libraries take a fraction of this time, even on a slow machine. */
const LIMIT_MS = 2000;
/** For a machine that is busy with other work. */
const BUSY_LIMIT_MS = 8000;
/**
 * For a child that waited for a processor, as on a machine with a person's programs starting: a model that is loaded
 * without kernels stays as slow as long as it is loaded.
 */
const WAITED_LIMIT_MS = 32_000;
/** Share of a limit in which such a child waited. */
const WAITED_SHARE = 0.3;
/**
 * If the child's processor time is below this part of the elapsed time, it slept, or other processes had the processor.
 */
const BUSY_SHARE = 0.7;
/**
 * This process computes for this long to see whether it gets the processor: some systems count processor time in steps
 * of 16 ms.
 */
const PROBE_MS = 64;
const START_LIMIT_MS = 30_000;
const LINE_MAX = 4096;

export interface TrustOptions {
  /** Folder for kept results; undefined: results are not kept. */
  readonly cacheDir: string | undefined;
  /** The command line that starts this program. */
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder of the libraries; left out: that of this program. */
  readonly folder?: string | undefined;
}

export interface Verdict {
  readonly level: Level;
  /** Undefined: it passed. */
  readonly fault: string | undefined;
}

/** The outcome of one test. */
interface Outcome {
  readonly fault: string | undefined;
  /** The same test would have the same result. */
  readonly isLasting: boolean;
  /** The child had too little processor time to be judged by its limit. */
  readonly isBusy?: boolean;
  /** It is known to have waited for a processor meanwhile. */
  readonly hasWaited?: boolean;
}

/** Tests libraries when they are first needed, each once. */
export class Trust {
  readonly #options: TrustOptions;
  readonly #folder: string;
  readonly #results: KeptFile | undefined;
  #found: Promise<readonly Verdict[]> | undefined;

  constructor(options: TrustOptions) {
    this.#options = options;
    this.#folder = options.folder ?? libraryFolder();
    this.#results = options.cacheDir === undefined ? undefined : keptFile(join(options.cacheDir, RESULTS_FILE));
  }

  /**
   * Verdicts on the levels of this machine, best first, up to the first that passed; WebAssembly is the last. Tests
   * levels without a kept result.
   */
  verdicts(): Promise<readonly Verdict[]> {
    this.#found ??= this.#judge((level) => this.#test(level));
    return this.#found;
  }

  /** The same from kept results alone; undefined if a test is missing. */
  async known(): Promise<readonly Verdict[] | undefined> {
    let isKnown = true;
    const found = await this.#judge(async () => {
      isKnown = false;
      return undefined;
    });
    return isKnown ? found : undefined;
  }

  /**
   * The verdict on the kernels as WebAssembly; tests them if no result is kept. Undefined: this engine cannot run them.
   */
  async wasmVerdict(): Promise<Verdict | undefined> {
    const level = wasmLevel(this.#folder);
    return level && { level, fault: await this.#faultOf(level, (untested) => this.#test(untested)) };
  }

  /** Tests every level of this machine even if a result is kept, and keeps the results. */
  async testAll(): Promise<readonly (Verdict & { readonly ms: number })[]> {
    const verdicts = [];
    for (const level of this.#levels()) {
      const begin = performance.now();
      const fault = damageOf(level.file) ?? (await this.#test(level));
      verdicts.push({ level, fault, ms: performance.now() - begin });
    }
    return verdicts;
  }

  /** @param unknown returns the fault of a level without a kept result */
  async #judge(unknown: (level: Level) => Promise<string | undefined>): Promise<Verdict[]> {
    const verdicts: Verdict[] = [];
    for (const level of this.#levels()) {
      const fault = await this.#faultOf(level, unknown);
      verdicts.push({ level, fault });
      if (fault === undefined) break;
    }
    return verdicts;
  }

  #levels(): Level[] {
    const wasm = wasmLevel(this.#folder);
    return [...levelsHere(this.#folder), ...(wasm ? [wasm] : [])];
  }

  async #faultOf(level: Level, unknown: (level: Level) => Promise<string | undefined>): Promise<string | undefined> {
    const damage = damageOf(level.file);
    if (damage !== undefined) return damage;
    const kept = await this.#results?.read(keyOf(level));
    if (kept === PASSED) return undefined;
    return typeof kept === "string" ? kept : unknown(level);
  }

  /** Tests a level, keeps a lasting result, and returns the fault. */
  async #test(level: Level): Promise<string | undefined> {
    const { fault, isLasting } = await runTest(level, this.#options);
    if (isLasting) {
      // The folder cannot be written: the next process tests again.
      await this.#results?.write(keyOf(level), fault ?? PASSED).catch(() => undefined);
    } else {
      this.#found = undefined; // the next call tests it again
    }
    return fault;
  }
}

/** A key that identifies library, system and processor. */
function keyOf({ file, features, level }: Level): string {
  const machine = [process.platform, process.arch, release(), cpus()[0]?.model, Bun.version];
  const hash = createHash("sha256").update(readFileSync(file));
  hash.update(JSON.stringify([...machine, features, knownAnswer(file)]));
  return `${level} ${hash.digest("hex").slice(0, 32)}`;
}

async function runTest(level: Level, options: TrustOptions): Promise<Outcome> {
  try {
    const first = await testWithin(level, options, LIMIT_MS);
    const second = first.isBusy ? await testWithin(level, options, BUSY_LIMIT_MS) : first;
    return first.isBusy && second.hasWaited ? await testWithin(level, options, WAITED_LIMIT_MS) : second;
  } catch (error) {
    return { fault: `its self-test did not start: ${messageOf(error)}`, isLasting: false };
  }
}

/** Time that a process's first thread has waited for a processor, in ms; 0 if the system does not report it. */
function waitedMs(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, "latin1").split(" ")[1]) / 1e6;
  } catch {
    return 0; // not Linux
  }
}

/**
 * Returns whether other work keeps the processors busy, after the child has ended: if so, the child may have waited for
 * a processor, else it slept. Computes for a few hundredths of a second, after failed tests only.
 */
function isMachineBusy(): boolean {
  const [begin, before] = [performance.now(), process.cpuUsage()];
  while (performance.now() - begin < PROBE_MS);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 < BUSY_SHARE * (performance.now() - begin);
}

async function testWithin(
  { level, file, features, words, panelRows }: Level,
  { command, env }: TrustOptions,
  limitMs: number,
): Promise<Outcome> {
  const order: TestedLevel = { level, file, features, words, panelRows };
  const child = Bun.spawn([...command, CHILD_COMMAND, JSON.stringify(order)], {
    env: { ...env, BUN_ENABLE_CRASH_REPORTING: "0" },
    stdio: ["ignore", "pipe", "ignore"],
  });
  let lateMs: number | undefined; // time that a late child waited for a processor
  let begunMs = 0;
  const end = (): void => {
    lateMs = waitedMs(child.pid) - begunMs;
    child.kill("SIGKILL");
  };
  let timer = setTimeout(end, START_LIMIT_MS);
  const lines: string[] = [];
  const tooLong = (): AppError => new AppError("runner", "the self-test printed a line that is too long");
  for await (const line of linesOf(child.stdout, { max: LINE_MAX, tooLong })) {
    lines.push(line);
    if (lines.length > 1) continue;
    clearTimeout(timer);
    begunMs = waitedMs(child.pid);
    timer = setTimeout(end, limitMs);
  }
  await child.exited;
  clearTimeout(timer);
  const [begun, answer] = lines;
  const how = child.signalCode ? `signal ${child.signalCode}` : `exit code ${child.exitCode}`;
  if (begun !== BEGUN) return { fault: `its self-test did not start: ${how}`, isLasting: false };
  if (lateMs !== undefined) {
    const cpuMs = Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1000;
    const isBusy = cpuMs < BUSY_SHARE * limitMs && isMachineBusy();
    const hasWaited = isBusy && lateMs > WAITED_SHARE * limitMs;
    return { fault: `no answer within ${limitMs / 1000} s`, isLasting: !isBusy, isBusy, hasWaited };
  }
  // SIGKILL comes from outside, for example if memory runs out
  if (answer === undefined) return { fault: `it ended the test: ${how}`, isLasting: child.signalCode !== "SIGKILL" };
  const known = knownAnswer(file);
  if (answer === known) return { fault: undefined, isLasting: true };
  const isHash = /^[0-9a-f]{64}$/.test(answer);
  return {
    fault: known === undefined ? "its answer is not known" : isHash ? "wrong results" : answer,
    isLasting: true,
  };
}
