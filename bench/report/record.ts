/**
 * The record of a benchmark, written to `bench/records/` with `--record`; `bun bench/report.ts` makes REPORT.md from
 * the records.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem } from "node:os";
import { join } from "node:path";

const RECORDS = join(import.meta.dir, "../records");

export interface Figure {
  /** The part of the benchmark that measures it, of one that can run in parts. */
  readonly part?: string;
  /** The commit that it was measured on, if that is not the record's. */
  readonly commit?: string;
  readonly what: string;
  readonly measure: string;
  readonly unit: string;
  /** One value per round. */
  readonly ours: readonly number[];
  readonly peer?: { readonly name: string; readonly rounds: readonly number[] };
  /** Share of the bandwidth of `threads` threads, from 0 to 1: for decode, which reads all weights for each token. */
  readonly bandwidthShare?: number;
  /** Standard error of the ratio, where a sample decides it. A goal that is missed by less than two is undecided. */
  readonly error?: number;
  readonly goal?: Goal;
}

/** A goal for the ratio to the peer's median, or for our own median. */
export interface Goal {
  readonly of: "ratio" | "value";
  readonly atLeast?: number;
  readonly atMost?: number;
}

export interface BenchRecord {
  readonly title: string;
  readonly command: string;
  readonly commit: string;
  readonly date: string;
  readonly machine: string;
  /** Bytes per second of all threads together, if measured. */
  readonly bandwidth?: number;
  /** Load averages of the last minute: before, and at the end, which includes the benchmark itself. */
  readonly load: readonly [before: number, after: number];
  readonly figures: readonly Figure[];
}

const loadBefore = loadavg()[0]!;

/** All records, by the names of their files. */
export function readRecords(): Map<string, BenchRecord> {
  const names = readdirSync(RECORDS).filter((name) => name.endsWith(".json"));
  return new Map(
    names.map((name) => [name.slice(0, -".json".length), JSON.parse(readFileSync(join(RECORDS, name), "utf8"))]),
  );
}

/** Writes `bench/records/NAME.json`. @param earlier keeps the figures of the parts that did not run, and its command */
export function writeRecord(
  name: string,
  { title, figures, bandwidth }: Pick<BenchRecord, "title" | "figures" | "bandwidth">,
  earlier?: BenchRecord,
): void {
  const [script, ...given] = process.argv.slice(1);
  const command = ["bun", script!.slice(script!.lastIndexOf("bench/")), ...withoutFolders(given)].join(" ");
  const record: BenchRecord = {
    title,
    command: earlier?.command ?? command,
    commit: commit(),
    date: new Date().toISOString().slice(0, 10),
    machine: machine(),
    ...(bandwidth ? { bandwidth } : {}),
    load: [loadBefore, loadavg()[0]!],
    figures: earlier ? merged(earlier, figures) : figures,
  };
  mkdirSync(RECORDS, { recursive: true });
  const path = join(RECORDS, `${name}.json`);
  writeFileSync(path, JSON.stringify(record, rounded));
  Bun.spawnSync([process.execPath, "fmt", path]);
}

/** The figures in the order of their parts in the earlier record; new parts come last. */
export function merged(earlier: BenchRecord, figures: readonly Figure[]): Figure[] {
  const measured = new Set(figures.map(({ part }) => part));
  const order = new Set([...earlier.figures, ...figures].map(({ part }) => part));
  const kept = earlier.figures.map((figure) => ({ ...figure, commit: figure.commit ?? earlier.commit }));
  return [...order].flatMap((part) => (measured.has(part) ? figures : kept).filter((figure) => figure.part === part));
}

/** Removes local folders from arguments. */
function withoutFolders(given: readonly string[]): string[] {
  return given
    .filter((each) => each !== "--record")
    .map((each) => (each.startsWith("/") ? each.replace(/.*\//, "") : each));
}

function rounded(_: string, value: unknown): unknown {
  return typeof value === "number" ? Number(value.toPrecision(5)) : value;
}

function commit(): string {
  const git = (...given: string[]): string =>
    Bun.spawnSync(["git", ...given], { cwd: import.meta.dir })
      .stdout.toString()
      .trim();
  const isChanged = git("status", "--porcelain", "--", "../../src", "../../kernels") !== "";
  return `${git("rev-parse", "--short", "HEAD")}${isChanged ? " and changes" : ""}`;
}

function machine(): string {
  const all = cpus();
  const gigabytes = Math.round(totalmem() / 1e9);
  return `${all[0]?.model ?? "unknown CPU"} with ${levels()}, ${all.length} processors, ${gigabytes} GB, ${process.platform} ${release().split("-")[0]}, Bun ${Bun.version}`;
}

function levels(): string {
  if (process.platform !== "linux") return process.arch;
  const flags = readFileSync("/proc/cpuinfo", "utf8");
  const known = {
    amx_int8: "AMX",
    avx512_vnni: "AVX-512 VNNI",
    avx_vnni: "AVX-VNNI",
    avx2: "AVX2",
    i8mm: "i8mm",
    asimddp: "dot products",
  };
  return Object.entries(known).find(([flag]) => flags.includes(flag))?.[1] ?? process.arch;
}

/** Bytes per second that threads read together, each from its own memory outside the caches; the best of six runs. */
export async function readBandwidth(threads: number): Promise<number> {
  const source = `const memory = Buffer.alloc(256 * 2 ** 20, 1);
    let best = 0;
    self.onmessage = () => {
      for (let i = 0; i < 6; i++) {
        const start = Bun.nanoseconds();
        memory.indexOf(0);
        best = Math.max(best, memory.length / ((Bun.nanoseconds() - start) / 1e9));
      }
      self.postMessage(best);
    };
    self.postMessage(0);`;
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const workers = Array.from({ length: threads }, () => new Worker(url));
  const next = (worker: Worker): Promise<number> =>
    new Promise((resolve) => void (worker.onmessage = ({ data }) => resolve(data as number))); // it posts numbers
  await Promise.all(workers.map(next));
  const rates = workers.map(next);
  for (const worker of workers) worker.postMessage(0);
  const all = (await Promise.all(rates)).reduce((sum, rate) => sum + rate, 0);
  for (const worker of workers) worker.terminate();
  return all;
}
