/** One process of `bun test` over some files: its environment, and the meaning of its output, report and exit. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

/** Longer than any shard takes on a slow machine: a hung one must not block the run for ever. */
const SHARD_MS_MAX = 20 * 60_000;
/** The rest of the output arrives within this time after the end, unless a stray process keeps the pipe open. */
const OUTPUT_MS_MAX = 4000;
/** Time limit of tests without one of their own: other processes share the processors. */
const TEST_MS_MAX = 60_000;
const TAIL_LINES = 60;
/** Compression level of the program's files: the users' level takes longer than all other compilation. */
const LEVEL = "3";

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export interface ShardResult extends Counts {
  readonly files: readonly string[];
  readonly seconds: number;
  /** Processor seconds, including its children's. */
  readonly cpuSeconds: number;
  /** The output of each failed test, and the reason if the process itself failed. */
  readonly failures: readonly string[];
  readonly skips: readonly string[];
  /** Seconds that each file took, its loading included. */
  readonly durations: Readonly<Record<string, number>>;
}

export interface ShardOptions {
  readonly root: string;
  /** A folder for the temporary files of this run. */
  readonly temporary: string;
  readonly seed: number;
  /** More variables. */
  readonly env?: Readonly<Record<string, string>>;
  /** Time limit, after which it is killed. */
  readonly msMax?: number;
  readonly onStart?: (pid: number) => void;
  readonly onEnd?: (pid: number) => void;
}

/** Runs the files in a process with a separate home. Kills all processes that it leaves. */
export async function runShard(files: readonly string[], options: ShardOptions): Promise<ShardResult> {
  const { root, temporary, seed, env, msMax = SHARD_MS_MAX } = options;
  const home = mkdtempSync(join(temporary, "home-"));
  const report = join(home, "report.xml");
  const flags = [`--seed=${seed}`, `--timeout=${TEST_MS_MAX}`, "--reporter=junit", `--reporter-outfile=${report}`];
  const startedMs = performance.now();
  const child = Bun.spawn([process.execPath, "test", ...flags, ...files.map((file) => `./${file}`)], {
    cwd: root,
    env: {
      ...process.env,
      HOME: home,
      XDG_CACHE_HOME: join(home, ".cache"),
      BUN_RUNTIME_TRANSPILER_CACHE_PATH: join(temporary, "transpiled"), // shared, keyed by content
      TMPDIR: temporary,
      HEARTH_TEST_SEED: `${seed}`,
      // tests make hundreds, and each beyond the fourth costs a collection of the whole heap
      BUN_JSC_maxNumWasmFastMemories: "64",
      ...env,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    detached: true, // a separate process group, which ends with the process
  });
  options.onStart?.(child.pid);
  let late = "";
  const timer = setTimeout(() => {
    late = ` after ${msMax / 1000} s, its threads with their milliseconds of processor: ${threadsOf(child.pid)}`;
    killGroup(child.pid);
  }, msMax);
  const code = child.exited.finally(() => {
    clearTimeout(timer);
    killGroup(child.pid);
    options.onEnd?.(child.pid);
  });
  const outputs = [collect(child.stdout), collect(child.stderr)];
  const exitCode = await code;
  await Promise.race([Promise.all(outputs.map(({ done }) => done)), Bun.sleep(OUTPUT_MS_MAX)]);
  const texts = outputs.map(({ text }) => text());
  const ended = (child.signalCode === null ? `code ${exitCode}` : `${child.signalCode}`) + late;
  const xml = await Bun.file(report)
    .text()
    .catch(() => "");
  rmSync(home, { recursive: true, force: true });
  const seconds = (performance.now() - startedMs) / 1000;
  const cpuSeconds = Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6;
  return judge({ files, ended, output: texts.join("\n"), xml, seconds, cpuSeconds });
}

/** Reads all of a stream; `text` is the part so far. */
function collect(stream: ReadableStream<Uint8Array>): { text: () => string; done: Promise<void> } {
  const chunks: Uint8Array[] = [];
  const read = async (): Promise<void> => {
    for await (const chunk of stream) chunks.push(chunk);
  };
  return { text: () => Buffer.concat(chunks).toString(), done: read() };
}

/** Threads of a hung process: the computing ones, and what the others wait in. Linux only. */
function threadsOf(pid: number): string {
  try {
    const folder = `/proc/${pid}/task`;
    const threads = readdirSync(folder).map((id) => {
      const stat = readFileSync(join(folder, id, "stat"), "utf8");
      const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      const ticks = Number(fields[10]) + Number(fields[11]); // in hundredths of a second
      const place = readFileSync(join(folder, id, "wchan"), "utf8");
      return `${stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")"))} ${state} ${ticks * 10} ${place}`;
    });
    return threads.join("; ");
  } catch {
    return "not known";
  }
}

/** Compiles Hearth into one program. The result has no tests: a failure is the compiler's. */
export async function compileHearth(out: string, options: Omit<ShardOptions, "seed">): Promise<ShardResult> {
  const { root, temporary } = options;
  const script = "packaging/compile.ts";
  const startedMs = performance.now();
  const child = Bun.spawn([process.execPath, script, "--out", out, "--level", LEVEL], {
    cwd: root,
    env: { ...process.env, TMPDIR: temporary, ...options.env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  options.onStart?.(child.pid);
  const texts = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  const code = await child.exited;
  options.onEnd?.(child.pid);
  const ended = child.signalCode ?? `code ${code}`;
  const failures = code === 0 ? [] : [`${script} ended with ${ended}:\n${tail(texts.join("\n"))}`];
  return {
    files: [script],
    seconds: (performance.now() - startedMs) / 1000,
    cpuSeconds: Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1e6,
    passed: 0,
    failed: failures.length,
    skipped: 0,
    failures,
    skips: [],
    durations: {},
  };
}

/** Kills a process and all its children, if any are left. */
export function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // none are left
  }
}

export interface Ended {
  readonly files: readonly string[];
  /** `code 0` is the only success. */
  readonly ended: string;
  readonly output: string;
  /** The JUnit report; empty if none was written. */
  readonly xml: string;
  readonly seconds: number;
  readonly cpuSeconds: number;
}

/**
 * The result of a process of `bun test`. It passed only if it ended with code 0, wrote its summary, and every file is
 * in its report with a test: a crash, or a test that ends the process, counts as at least one failure.
 */
export function judge({ files, ended, output, xml, seconds, cpuSeconds }: Ended): ShardResult {
  const count = (what: string): number => Number(output.match(new RegExp(`^ *(\\d+) ${what}$`, "m"))?.[1] ?? 0);
  const suites = [...xml.matchAll(/^ {2}<testsuite name="([^"]+)"[^>]* tests="(\d+)"[^>]* time="([\d.]+)"/gm)];
  const tests = new Map(suites.map(([, file, number]) => [file!, Number(number)]));
  const named = failuresIn(output);
  const failures = [...named];
  const isWhole = /^Ran \d+ tests? across \d+ files?\./m.test(output) && xml !== "";
  if (!isWhole) failures.push(`the process ended with ${ended} before its summary:\n${tail(output)}`);
  else if (ended !== "code 0" && named.length === 0) failures.push(`the process ended with ${ended}:\n${tail(output)}`);
  if (isWhole) for (const file of files) if (!tests.get(file)) failures.push(`${file}: no test of it ran`);
  return {
    files,
    seconds,
    cpuSeconds,
    passed: count("pass"),
    failed: Math.max(count("fail"), failures.length),
    skipped: count("skip") + count("todo"),
    failures,
    skips: [...output.matchAll(/^\((?:skip|todo)\) (.*)$/gm)].map(([, name]) => name!),
    durations: Object.fromEntries(suites.map(([, file, , time]) => [file!, Number(time)])),
  };
}

const tail = (output: string): string => output.trimEnd().split("\n").slice(-TAIL_LINES).join("\n");

/** The text before each failed test, from the result before it on. */
function failuresIn(output: string): string[] {
  const found: string[] = [];
  let since: string[] = [];
  let file = "";
  for (const line of output.split("\n")) {
    if (/^\d+ tests? failed:$/.test(line)) break; // they are repeated at the end
    if (/^test\/.*\.test\.ts:$/.test(line)) [file, since] = [line, []];
    else if (/^\((pass|skip|todo)\) /.test(line)) since = [];
    else if (!line.startsWith("(fail) ")) since.push(line);
    else {
      found.push([file, ...since, line].join("\n"));
      since = [];
    }
  }
  return found;
}
