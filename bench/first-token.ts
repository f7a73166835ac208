/**
 * Time to the first token of a request for a model that a running server has never loaded, its file in the page cache;
 * bytes that the server writes meanwhile; and the runner's memory afterwards, without its file.
 *
 *   bun bench/first-token.ts FILE.gguf [--rounds 5] [--prompt TEXT] [--settle 5] [--goal 0.3] [--record]
 *
 * Each round starts a separate server, and sends the request after `--settle` seconds. The phases are measured by a
 * load in a separate process, in processor time of all its threads. `make-model.ts --vocabulary` gives a file of random
 * weights a real tokenizer, whose merges take longer to read than the rest of a header. The goals: 0.3 s for the 1.2 B
 * shape, 1 s for the 8 B one, 150 MB besides the file and the KV cache, and no writes.
 */
import { readFileSync, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { parseArgs } from "node:util";
import { writeRecord } from "./report/record.ts";
import { ask, median, withServer } from "./streamed.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "5" },
    prompt: { type: "string", default: "Hello, who are you?" },
    settle: { type: "string", default: "5" },
    goal: { type: "string" },
    record: { type: "boolean", default: false },
    phases: { type: "boolean", default: false },
  },
});
const [file] = positionals;
if (!file) throw new Error("usage: bun bench/first-token.ts FILE.gguf [--rounds N] [--prompt TEXT]");
if (flags.phases) {
  await showPhases(file);
  process.exit();
}

const fileBytes = statSync(file).size;
await intoPageCache(file);
const child = Bun.spawn([process.execPath, import.meta.path, file, "--phases"], { stdout: "inherit" });
await child.exited;

const SETTINGS = { HEARTH_SPARE_RUNNER: "true" }; // the defaults, which our tests' environment changes
const seconds: number[] = [];
const besides: number[] = [];
let written = 0;
await withServer(
  file,
  async ({ start, model, home }) => {
    console.log("round  first token s  load s  second request s  runner beside its file MB");
    for (let round = 1; round <= Number(flags.rounds); round++) {
      const hearth = await start();
      await Bun.sleep(1000 * Number(flags.settle));
      await intoPageCache(await blobBelow(home)); // a copy of the file
      const before = await bytesOf(home);
      const request = { model, prompt: flags.prompt, raw: true, options: { num_predict: 8, temperature: 0 } };
      const { firstMs, end } = await ask(hearth, "/api/generate", request);
      const again = await ask(hearth, "/api/generate", { ...request, prompt: `${round} ${flags.prompt}` });
      await Bun.sleep(5000); // let garbage collection run
      written += (await bytesOf(home)) - before;
      const held = (await hearth.runnerPids()).map(residentBytes);
      const beside = Math.max(...held) - fileBytes;
      seconds.push(firstMs / 1000);
      besides.push(beside / 1e6);
      const loaded = Number(end["load_duration"]) / 1e9;
      const row = [firstMs / 1000, loaded, again.firstMs / 1000].map((value) => value.toFixed(3).padStart(12));
      console.log(`${round} ${row.join(" ")} ${(beside / 1e6).toFixed(0).padStart(12)}`);
      await hearth.stop();
    }
  },
  SETTINGS,
);
const goal = Number(flags.goal ?? (fileBytes < 2e9 ? 0.3 : 1));
console.log(`written to disk beside snapshots of prompts: ${written} bytes (none is wanted)`);
console.log(`runner beside its file: ${median(besides).toFixed(0)} MB, cache included (at most 150 and the cache)`);
console.log(`first token: ${median(seconds).toFixed(3)} s (median; at most ${goal} is wanted)`);

if (flags.record) {
  const shape = fileBytes < 2e9 ? "1.2b" : "8b";
  const value = (measure: string, unit: string, rounds: readonly number[], atMost: number) =>
    ({ what: basename(file), measure, unit, ours: rounds, goal: { of: "value", atMost } }) as const;
  const figures = [
    value("first token", "s", seconds, goal),
    value("memory beside the file", "MB", besides, 150),
    value("written to disk", "bytes", [written], 0),
  ];
  writeRecord(`first-token-${shape}`, { title: `A model that was never loaded, ${shape}`, figures });
}

async function intoPageCache(path: string): Promise<void> {
  for await (const _ of Bun.file(path).stream());
}

/** The store's copy of the file. */
async function blobBelow(home: string): Promise<string> {
  const folder = join(home, ".hearth", "models", "blobs");
  const names = (await readdir(folder)).map((name) => join(folder, name));
  const blob = names.find((path) => statSync(path).size === fileBytes);
  if (!blob) throw new Error(`${folder}: expected a blob of ${fileBytes} bytes`);
  return blob;
}

function residentBytes(pid: number): number {
  return 1024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
}

/** Bytes of all files below a folder, except snapshots of prompts, which are stored on purpose. */
async function bytesOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !/\/prefixes(\/|$)/.test(entry.parentPath));
  return files.reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0);
}

/** Loads like a runner, step by step. */
async function showPhases(path: string): Promise<void> {
  let [used, since] = [process.cpuUsage(), performance.now()];
  const bootMs = (used.user + used.system) / 1000;
  const rows: [string, number, number, number][] = [["start of Bun", bootMs, 0, process.memoryUsage().rss / 1e6]];
  const done = (what: string): void => {
    const { user, system } = process.cpuUsage(used);
    rows.push([what, (user + system) / 1000, performance.now() - since, process.memoryUsage().rss / 1e6]);
    [used, since] = [process.cpuUsage(), performance.now()];
  };
  await import("../src/engine/runner/process.ts");
  done("imports of a runner");
  const { mapFile } = await import("../src/engine/formats/files/map.ts");
  const { openGgufFrom } = await import("../src/engine/formats/gguf/read.ts");
  const { loadProgram } = await import("../src/engine/architectures/index.ts");
  const { loadTokenizer, TEXT_KEYS } = await import("../src/engine/text/tokenizer/load.ts");
  const { simdBackend } = await import("../src/engine/backends/host/simd.ts");
  const gguf = openGgufFrom(mapFile, path, { asTexts: TEXT_KEYS });
  done("header");
  const program = loadProgram(gguf);
  done("program");
  const tokenizer = loadTokenizer(gguf.metadata, path, gguf.texts);
  done("tokenizer");
  const shape = { ctxLen: 4096, slots: 4, chunk: 512, threads: 0, precise: false, cacheDir: undefined };
  const session = await simdBackend.load(program, shape);
  done("session");
  const tokens = tokenizer.encode(flags.prompt, { addSpecial: false, parseSpecial: false });
  await session.run([{ slot: 0, start: 0, tokens, logits: "last" }]);
  done(`prompt of ${tokens.length} tokens`);
  await session.run([{ slot: 1, start: 0, tokens, logits: "last" }]);
  done("the same again");
  console.log("phase                     processor ms   clock ms   resident MB");
  for (const [what, cpu, clock, resident] of rows) {
    const numbers = [cpu, clock, resident].map((value) => value.toFixed(1).padStart(11)).join(" ");
    console.log(`${what.padEnd(26)} ${numbers}`);
  }
}
