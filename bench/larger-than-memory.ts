/**
 * Models larger than memory: tokens per second of this backend and of llama.cpp in a control group that may use a share
 * of the file's bytes, alternated; medians of the rounds. Linux, as root.
 *
 *   bun bench/larger-than-memory.ts FILE [--share 0.5 --share 0.33] [--llama FOLDER] [--prompt 64] [--tokens 32]
 *     [--rounds 3] [--threads 2]
 *
 * --llama: folder of llama-bench and its libraries; also that of ik_llama.cpp. The file is dropped from the file cache
 * before each run. The kernel's count of kills must stay 0; a rate of 0 is a llama-bench that was killed.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { loadProgram } from "../src/engine/architectures/index.ts";
import { makeSimdBackend } from "../src/engine/backends/host/simd.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { makeRng } from "../src/engine/text/rng.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    share: { type: "string", multiple: true, default: ["0.5", "0.3333"] },
    llama: { type: "string" },
    prompt: { type: "string", default: "64" },
    tokens: { type: "string", default: "32" },
    rounds: { type: "string", default: "3" },
    threads: { type: "string", default: "2" },
    inside: { type: "boolean", default: false },
  },
});
const [path] = positionals;
if (!path) throw new Error("usage: bun bench/larger-than-memory.ts FILE [--share SHARE] [--llama FOLDER]");
const [prompt, tokens, threads] = [Number(values.prompt), Number(values.tokens), Number(values.threads)];

interface Figures {
  readonly prompt: number;
  readonly decode: number;
  /** Share of experts that were in memory, over the answer's tokens. */
  readonly hitRate?: number;
}

if (values.inside) {
  console.log(JSON.stringify(await measure(path)));
  process.exit(0);
}
const rows: object[] = [];
for (const share of values.share) rows.push(...(await compare(path, Number(share))));
console.table(rows);

/** In the control group. Tokens are random, as llama-bench's are. */
async function measure(file: string): Promise<Figures> {
  const program = loadProgram(openGguf(file));
  const options = { ctxLen: prompt + tokens, slots: 1, precise: false, threads, cacheDir: undefined };
  const session = await makeSimdBackend().load(program, options);
  const rng = makeRng(1);
  const text = Int32Array.from({ length: prompt + tokens }, () => Math.floor(rng.float() * program.shape.vocabSize));
  const run = (start: number, count: number): Promise<Float32Array> =>
    session.run([{ slot: 0, start, tokens: text.subarray(start, start + count), logits: "last" }]);
  const began = performance.now();
  await run(0, prompt);
  const read = performance.now();
  const before = session.streamed?.counts() ?? { hits: 0, misses: 0 };
  for (let i = 0; i < tokens; i++) await run(prompt + i, 1);
  const ended = performance.now();
  const after = session.streamed?.counts();
  const hits = (after?.hits ?? 0) - before.hits;
  return {
    prompt: (prompt / (read - began)) * 1000,
    decode: (tokens / (ended - read)) * 1000,
    ...(after && { hitRate: hits / (hits + after.misses - before.misses) }),
  };
}

async function compare(file: string, share: number): Promise<object[]> {
  const bytes = Math.floor(share * Bun.file(file).size);
  const ours: Figures[] = [];
  const theirs: Figures[] = [];
  let kills = 0;
  for (let round = 0; round < Number(values.rounds); round++) {
    const inside = [process.execPath, import.meta.path, file, "--inside", "--threads", values.threads];
    const own = await limited([...inside, "--prompt", values.prompt, "--tokens", values.tokens], bytes, file);
    kills += own.kills;
    if (own.kills > 0) throw new Error(`killed within ${bytes} bytes`);
    ours.push(JSON.parse(own.text) as Figures);
    if (values.llama !== undefined) theirs.push(await llamaBench(values.llama, file, bytes));
  }
  const line = (name: string, figures: readonly Figures[]): object => ({
    memory: `${Math.round(bytes / 2 ** 20)} MiB, ${Math.round(share * 100)} %`,
    name,
    prompt: median(figures.map((each) => each.prompt)),
    decode: median(figures.map((each) => each.decode)),
    "in memory": figures[0]?.hitRate === undefined ? "" : `${Math.round(100 * figures[0].hitRate)} %`,
    kills: name === "hearth" ? kills : "",
  });
  return [line("hearth", ours), ...(theirs.length > 0 ? [line("llama-bench", theirs)] : [])];
}

/** Prompt and answer are separate runs. */
async function llamaBench(folder: string, file: string, bytes: number): Promise<Figures> {
  const command = [resolve(folder, "llama-bench"), "-m", file, "-t", values.threads, "-r", "1"];
  const rate = async (...sizes: string[]): Promise<number> => {
    const { text, kills } = await limited([...command, ...sizes, "-o", "json"], bytes, file, folder);
    if (kills > 0) return 0;
    return (JSON.parse(text) as { avg_ts: number }[])[0]!.avg_ts;
  };
  const decode = await rate("-p", "0", "-n", values.tokens);
  return { prompt: await rate("-p", values.prompt, "-n", "0"), decode };
}

/** Runs a command in a separate control group. Throws if it fails. */
async function limited(
  command: readonly string[],
  bytes: number,
  file: string,
  libraries = "",
): Promise<{ text: string; kills: number }> {
  const isFirst = existsSync("/sys/fs/cgroup/memory");
  const group = join(isFirst ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup", `larger-than-memory-${process.pid}`);
  mkdirSync(group, { recursive: true });
  try {
    writeFileSync(join(group, isFirst ? "memory.limit_in_bytes" : "memory.max"), String(bytes));
    Bun.spawnSync(["dd", `if=${file}`, "iflag=nocache", "count=0", "status=none"]); // drops it from the file cache
    const script = `echo $$ > ${join(group, "cgroup.procs")} && exec "$@"`;
    const env = { ...process.env, LD_LIBRARY_PATH: libraries };
    const { stdout, stderr, exitCode } = Bun.spawnSync(["sh", "-c", script, "sh", ...command], { env });
    const events = readFileSync(join(group, isFirst ? "memory.oom_control" : "memory.events"), "utf8");
    const kills = Number(/^oom_kill (\d+)$/m.exec(events)?.[1] ?? 0);
    if (exitCode === 0 || kills > 0) return { text: stdout.toString(), kills };
    throw new Error(`${command[0]}: exit ${exitCode}: ${stderr.toString().slice(-2000)}`);
  } finally {
    rmdirSync(group);
  }
}

function median(figures: readonly number[]): number {
  const sorted = figures.toSorted((a, b) => a - b);
  return Math.round((sorted[sorted.length >> 1] ?? Number.NaN) * 100) / 100;
}
