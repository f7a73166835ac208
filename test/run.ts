#!/usr/bin/env bun
/**
 * Runs the tests in several processes at once, all of them or some tiers, and adds up their results.
 *
 *   bun test/run.ts [unit|process|gpu|soak|real …] [--jobs N] [--record] [--programs FILE]
 *
 * Files share a process until they fill it, by the durations of the last recorded run; files that share a device are
 * all in one. The longest start first, and more at once while processors are idle. Each process has a separate home;
 * Bun's transpiled code is shared, and Hearth's cache about the machine. `--record` writes the durations of this run.
 * Files that start programs wait until FILE exists; the installer of those programs creates it. Hearth is compiled
 * once, and files that start it start that program.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { FOLDER_VARIABLE, realFolder } from "../bench/real/fetch.ts";
import { SHORT_LIVED } from "./bun-env.ts";
import { goldenRoot, hasGolden } from "./golden-root.ts";
import { MACHINE_CACHE_VARIABLE, PROGRAM_VARIABLE } from "./program.ts";
import { testSeed } from "./seed.ts";
import { compileHearth, killGroup, runShard, type Counts, type ShardOptions, type ShardResult } from "./shard.ts";
import { deviceSharers, testFiles, tiersOf, TIERS, type Tier } from "./tiers.ts";

const ROOT = join(import.meta.dir, "..");
const DURATIONS = join(import.meta.dir, "durations.json");
/** Target duration of a process: long enough to need few processes, short enough to share the work evenly. */
const SHARD_SECONDS: Readonly<Record<Tier, number>> = { unit: 30, process: 15, gpu: 15, soak: 15, real: 300 };
const UNKNOWN_SECONDS = 1;
/** A process hangs if it takes more than ten times its known duration, plus a slow machine's start. */
const shardMsMax = (seconds: number): number => 240_000 + 10_000 * seconds;
/** Lines of a failure shown with its shard; all of it is repeated at the end. */
const SHOWN_LINES = 40;

/** Shards in addition to `--jobs`, if the running ones mostly wait. */
const MORE_MAX = 3;
/** Interval of looking for idle processors, and the idle share that allows one more. */
const LOOK_MS = 500;
const IDLE_ENOUGH = 0.25;

/** Their files start none of the programs that may still be being installed. */
const WITHOUT_PROGRAMS: readonly Tier[] = ["unit", "gpu"];

/** They mostly wait, for clocks, disks and servers: start them first, together with files that compute. */
const WAITING = [
  "test/postgres-suite.test.ts",
  "test/gateway/agent/kill.test.ts",
  "test/gateway/database/postgres-cut.test.ts",
  "test/gateway/database/postgres-news.test.ts",
  "test/gateway/channels/outbox/outbox.test.ts",
  "test/gateway/operate/mail.test.ts",
  "test/gateway/operate/postgres-outages.test.ts",
  "test/gateway/operate/watch.test.ts",
  "test/hostile/cluster-kill.test.ts",
  "test/hostile/hooks.test.ts",
  "test/server/http/idle.test.ts",
];

/**
 * They start Hearth from its sources, like `bun test FILE` for every file: tests of the command line and the server
 * themselves, so that both ways are tested; and of ONNX models, for which a compiled program lacks the package.
 */
const FROM_SOURCE = [
  "test/e2e/cli.test.ts",
  "test/e2e/command-line.test.ts",
  "test/e2e/serve.test.ts",
  "test/e2e/onnx.test.ts",
  "test/real/whisper.test.ts",
];

interface Shard {
  readonly tier: Tier;
  readonly waits: boolean;
  /** True if Hearth is started from its sources. */
  readonly fromSource: boolean;
  readonly files: string[];
  seconds: number;
}

interface ShardRules {
  readonly durations: Readonly<Record<string, number>>;
  /** Files that share a device. */
  readonly sharers: ReadonlySet<string>;
}

/** Shards of files of one tier, the longest first. */
function shardsOf(tiers: ReadonlyMap<string, Tier>, { durations, sharers }: ShardRules): Shard[] {
  const shards: Shard[] = [];
  const seconds = (file: string): number => durations[file] ?? UNKNOWN_SECONDS;
  const kinds = TIERS.flatMap((tier) => [
    { tier, waits: false, shares: false, fromSource: false, secondsMax: SHARD_SECONDS[tier] },
    { tier, waits: false, shares: false, fromSource: true, secondsMax: SHARD_SECONDS[tier] },
    { tier, waits: true, shares: false, fromSource: false, secondsMax: SHARD_SECONDS[tier] },
    { tier, waits: false, shares: true, fromSource: false, secondsMax: Infinity },
  ]);
  for (const { tier, waits, shares, fromSource, secondsMax } of kinds) {
    const ofTier = [...tiers].filter(([, other]) => other === tier).map(([file]) => file);
    const files = ofTier.filter(
      (file) =>
        WAITING.includes(file) === waits && sharers.has(file) === shares && FROM_SOURCE.includes(file) === fromSource,
    );
    let open: Shard | undefined;
    for (const file of files.toSorted((a, b) => seconds(b) - seconds(a))) {
      if (!open || open.seconds + seconds(file) > secondsMax)
        shards.push((open = { tier, waits, fromSource, files: [], seconds: 0 }));
      open.files.push(file);
      open.seconds += seconds(file);
    }
  }
  return shards.toSorted((a, b) => b.seconds - a.seconds);
}

interface Taking {
  readonly jobs: number;
  readonly isIdle: boolean;
  readonly mayStart: (shard: Shard) => boolean;
}

/**
 * The next shard to start, if any: `jobs` computing shards run at once, one of them on the GPU if others remain, and
 * another that waits. One more if processors are idle.
 */
function take(shards: Shard[], running: readonly Shard[], { jobs, isIdle, mayStart }: Taking): Shard | undefined {
  const computing = running.filter(({ waits }) => !waits);
  const onGpu = computing.some(({ tier }) => tier === "gpu");
  const preferred: ((shard: Shard) => boolean)[] = [];
  if (computing.length < jobs) {
    preferred.push(({ waits, tier }) => !waits && (tier === "gpu") !== onGpu);
    preferred.push(({ waits }) => !waits);
  }
  if (isIdle || computing.length === running.length) preferred.push(({ waits }) => waits);
  if (isIdle) preferred.push(({ tier }) => tier !== "gpu");
  const found = preferred.map((suits) => shards.findIndex((shard) => mayStart(shard) && suits(shard)));
  const next = found.find((index) => index >= 0);
  return next === undefined ? undefined : shards.splice(next, 1)[0];
}

/** Counters of this machine's processors, in milliseconds summed over all. */
function readProcessors(): { idle: number; all: number; atMs: number } {
  const times = cpus().map((each) => each.times);
  const sum = (list: readonly number[]): number => list.reduce((total, ms) => total + ms, 0);
  const all = sum(times.flatMap((each) => Object.values(each)));
  return { idle: sum(times.map(({ idle }) => idle)), all, atMs: performance.now() };
}

/** Returns a function that reports whether processors were idle since its last call. */
function idleWatch(): () => boolean {
  let last = readProcessors();
  return () => {
    if (performance.now() - last.atMs < LOOK_MS) return false;
    const [before, now] = [last, (last = readProcessors())];
    return cpus().length * (now.idle - before.idle) > IDLE_ENOUGH * (now.all - before.all);
  };
}

/**
 * Reports the number and the names of files that had no oracle, for want of reference data. `.ci/run` repeats the first
 * line.
 */
async function withoutOracles(): Promise<string> {
  if (hasGolden) return "oracles: none was skipped for want of reference data";
  const texts = await Promise.all([...wanted.keys()].map(async (file) => [file, await readText(file)] as const));
  const files = texts.filter(([, text]) => /\bgolden(Test)?\(|\bhasGolden\b/.test(text)).map(([file]) => file);
  return `oracles: those of ${files.length} files were skipped, no reference data at ${goldenRoot}\n  ${files.join("\n  ")}`;
}
const readText = (file: string): Promise<string> => Bun.file(join(ROOT, file)).text();

const plus = (a: Counts, b: Counts): Counts => ({
  passed: a.passed + b.passed,
  failed: a.failed + b.failed,
  skipped: a.skipped + b.skipped,
});
const inWords = ({ passed, failed, skipped }: Counts): string =>
  `${passed} passed, ${failed} failed, ${skipped} skipped`;

/** True if files of a shard may start the compiled program. */
const startsCompiled = ({ tier, fromSource }: Shard): boolean => tier !== "unit" && !fromSource;

/** Ending this process kills all running shards. */
function shardOptions(): ShardOptions {
  const temporary = mkdtempSync(join(tmpdir(), "hearth-tests-"));
  chmodSync(temporary, 0o755); // lets servers that drop their rights reach their files
  const groups = new Set<number>();
  const stop = (): never => {
    for (const pid of groups) killGroup(pid);
    rmSync(temporary, { recursive: true, force: true, maxRetries: 3 });
    process.exit(130);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, stop);
  const onStart = (pid: number): void => void groups.add(pid);
  const onEnd = (pid: number): void => void groups.delete(pid);
  return { root: ROOT, temporary, seed: testSeed, onStart, onEnd };
}

async function runAll(
  shards: readonly Shard[],
  { jobs, programs }: { jobs: number; programs: string | undefined },
): Promise<ShardResult[]> {
  const options = shardOptions();
  const [left, results]: [Shard[], ShardResult[]] = [[...shards], []];
  const running = new Map<Shard, Promise<void>>();
  const program = join(options.temporary, "hearth");
  const machineCache = join(options.temporary, "machine-cache");
  mkdirSync(machineCache, { mode: 0o700 });
  let isCompiled = false;
  const compile = async (): Promise<void> => {
    const result = await compileHearth(program, options);
    results.push(result);
    tell(result, "compiled      ");
    isCompiled = result.failed === 0;
    if (!isCompiled) left.splice(0, left.length, ...left.filter((shard) => !startsCompiled(shard)));
  };
  const start = (shard: Shard): void => {
    const env = {
      [PROGRAM_VARIABLE]: shard.fromSource ? "" : program,
      [MACHINE_CACHE_VARIABLE]: machineCache,
      [FOLDER_VARIABLE]: realFolder(), // outside the shard's home: models are fetched once
      ...(shard.tier === "soak" ? {} : SHORT_LIVED), // soak tests run like production
      ...(shard.tier === "unit" && { BUN_JSC_useFTLJIT: "1" }), // unit tests compute for half a minute in one process
    };
    const msMax = shardMsMax(shard.seconds);
    const run = runShard(shard.files, { ...options, env, msMax }).then((result) => {
      running.delete(shard);
      results.push(result);
      tell(result, `${shards.length - left.length - running.size}/${shards.length} ${shard.tier.padEnd(7)}`);
    });
    running.set(shard, run);
  };
  const mayStart = (shard: Shard): boolean =>
    (WITHOUT_PROGRAMS.includes(shard.tier) || programs === undefined || existsSync(programs)) &&
    (isCompiled || !startsCompiled(shard));
  try {
    const compiling = left.some(startsCompiled) ? compile() : undefined;
    const watch = idleWatch();
    while (left.length + running.size > 0) {
      const isIdle = watch() && running.size < jobs + MORE_MAX;
      const next = take(left, [...running.keys()], { jobs, isIdle, mayStart });
      if (next) start(next);
      else await Promise.race([...running.values(), Bun.sleep(LOOK_MS)]);
    }
    await compiling;
  } finally {
    rmSync(options.temporary, { recursive: true, force: true });
  }
  return results;
}

/** Prints the result of a shard, and its failures. */
function tell(result: ShardResult, at: string): void {
  const [first, { length }] = [result.files[0]!.replace(/^test\/|\.test\.ts$/g, ""), result.files];
  const what = length === 1 ? first : `${first} and ${length - 1} more`;
  const [took, cpu] = [result.seconds, result.cpuSeconds].map((each) => each.toFixed(1).padStart(6));
  console.log(`${at} ${took} s, ${cpu} s of processors, ${inWords(result)}: ${what}`);
  for (const failure of result.failures) console.log(`FAILED ${failure.split("\n").slice(-SHOWN_LINES).join("\n")}`);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { jobs: { type: "string" }, record: { type: "boolean" }, programs: { type: "string" } },
});
const unknown = positionals.find((name) => !TIERS.includes(name as Tier));
if (unknown !== undefined) throw new Error(`tier: expected one of ${TIERS.join(", ")}, got '${unknown}'`);
const jobs = Number(values.jobs ?? Math.max(2, availableParallelism()));
if (!Number.isInteger(jobs) || jobs < 1) throw new Error(`--jobs: expected a positive integer, got '${values.jobs}'`);

const all = await tiersOf(await testFiles());
const wanted = new Map([...all].filter(([, tier]) => positionals.length === 0 || positionals.includes(tier)));
const known = (await Bun.file(DURATIONS)
  .json()
  .catch(() => ({}))) as Record<string, number>; // none yet
const atStart = readProcessors();
const sharers = await deviceSharers([...wanted.keys()]);
const results = await runAll(shardsOf(wanted, { durations: known, sharers }), { jobs, programs: values.programs });

if (values.record) {
  const measured = { ...known, ...Object.assign({}, ...results.map(({ durations }) => durations)) };
  const kept = [...all.keys()].map((file) => [file, Math.round((measured[file] ?? UNKNOWN_SECONDS) * 10) / 10]);
  await Bun.write(DURATIONS, `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`);
}
for (const tier of TIERS) {
  const own = Object.assign({}, ...results.map(({ durations }) => durations)) as Record<string, number>;
  const times = Object.entries(own).filter(([file]) => wanted.get(file) === tier);
  const sum = times.reduce((total, [, seconds]) => total + seconds, 0);
  if (times.length > 0) console.log(`${tier}: ${times.length} files, ${sum.toFixed(1)} s`);
}
for (const skip of results.flatMap(({ skips }) => skips)) console.log(`(skip) ${skip}`);
console.log(await withoutOracles());
const failures = results.flatMap((result) => result.failures);
for (const failure of failures) console.log(`\n${failure}`);
if (failures.length > 0)
  console.log(`\nHEARTH_TEST_SEED=${testSeed} bun test --seed=${testSeed} FILE repeats a failure`);
const total = results.reduce<Counts>(plus, { passed: 0, failed: 0, skipped: 0 });
const cpuSeconds = results.reduce((sum, result) => sum + result.cpuSeconds, 0).toFixed(0);
const atEnd = readProcessors();
const seconds = ((atEnd.atMs - atStart.atMs) / 1000).toFixed(0);
const busy = (100 * (1 - (atEnd.idle - atStart.idle) / (atEnd.all - atStart.all))).toFixed(0);
console.log(`${seconds} s, ${cpuSeconds} s of processors, which were busy for ${busy} %`);
console.log(inWords(total));
process.exit(total.failed > 0 || total.passed === 0 ? 1 : 0);
