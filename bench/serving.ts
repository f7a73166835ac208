/**
 * What clients feel: tokens/s of one stream and of four at once, how fast the server answers `GET /api/version`
 * meanwhile, and what 200 requests aborted at random moments leave behind. Starts Hearth with a temporary home and
 * stops it.
 *
 *   bun bench/serving.ts [--model FILE.gguf] [--tokens 48] [--rounds 3] [--aborts 200]
 *
 * Without --model it uses the embedded model.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { startHearth, type Hearth } from "../test/e2e/hearth.ts";
import { installFile } from "./install-file.ts";

const PROMPT = "Once upon a time, in a land far away, there was a small house.";
const FIXED = { temperature: 0, seed: 1, num_ctx: 512 };

const { values: flags } = parseArgs({
  options: {
    model: { type: "string" },
    tokens: { type: "string", default: "48" },
    rounds: { type: "string", default: "3" },
    aborts: { type: "string", default: "200" },
  },
});

const home = mkdtempSync(join(tmpdir(), "hearth-serving-"));
const models = join(home, ".hearth", "models");
const name = flags.model ? await installFile({ root: models, file: resolve(flags.model), name: "bench" }) : "hearth";
const hearth = await startHearth({ home });
try {
  await stream(hearth, { tokens: 4, seed: 0 });
  const tokens = Number(flags.tokens);
  const ones: number[] = [];
  const fours: number[] = [];
  const latencies: number[] = [];
  for (let round = 0; round < Number(flags.rounds); round++) {
    ones.push(await rate(1, tokens));
    const probing = new AbortController();
    const probed = probe(hearth, probing.signal);
    fours.push(await rate(4, tokens));
    probing.abort();
    latencies.push(...(await probed));
  }
  const one = median(ones);
  const four = median(fours);
  console.log(`one stream    ${one.toFixed(1)} tokens/s`);
  console.log(`four streams  ${four.toFixed(1)} tokens/s   ratio ${(four / one).toFixed(2)}`);
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (q: number): string => (sorted[Math.floor(q * (sorted.length - 1))] ?? NaN).toFixed(1);
  console.log(`GET /api/version meanwhile: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, n ${sorted.length}`);
  await aborts(Number(flags.aborts));
} finally {
  await hearth.stop();
  rmSync(home, { recursive: true, force: true });
}

/** Tokens/s of `count` streams together, from the first request to the last answer. */
async function rate(count: number, tokens: number): Promise<number> {
  const startedMs = performance.now();
  const made = await Promise.all(Array.from({ length: count }, (_, i) => stream(hearth, { tokens, seed: i })));
  return (made.reduce((a, b) => a + b, 0) / (performance.now() - startedMs)) * 1000;
}

/** Tokens that one request made; the prompts differ from the first token on, so that none is cached for another. */
async function stream({ post }: Hearth, { tokens, seed }: { tokens: number; seed: number }): Promise<number> {
  const body = { model: name, prompt: `${seed} ${PROMPT}`, raw: true, options: { ...FIXED, num_predict: tokens } };
  const reply = await post("/api/generate", { ...body, stream: true });
  const last = (await reply.text()).trim().split("\n").at(-1) ?? "{}";
  const { eval_count: count, error } = JSON.parse(last);
  if (error) throw new Error(error);
  return count ?? 0;
}

async function probe({ url }: Hearth, signal: AbortSignal): Promise<number[]> {
  const times: number[] = [];
  while (!signal.aborted) {
    const startedMs = performance.now();
    await (await fetch(`${url}/api/version`)).text();
    times.push(performance.now() - startedMs);
    await Bun.sleep(10);
  }
  return times;
}

/** Requests that are cut off at random moments, eight at a time; then what is left of them. */
async function aborts(count: number): Promise<void> {
  const one = async (i: number): Promise<void> => {
    const options = { ...FIXED, num_predict: 400, temperature: 1, seed: i };
    const body = { model: name, prompt: `${i} ${PROMPT}`, raw: true, options };
    const after = 5 + Math.floor(Math.random() * 400);
    await hearth
      .post("/api/generate", body, AbortSignal.timeout(after))
      .then(
        (r) => r.text(),
        () => "",
      )
      .catch(() => "");
  };
  const batch = (from: number): Promise<void[]> => Promise.all(Array.from({ length: 8 }, (_, k) => one(from + k)));
  for (let i = 0; i < 40; i += 8) await batch(i); // warm up: every slot and buffer has been used once
  const before = await memory();
  for (let i = 0; i < count; i += 8) await batch(1000 + i);
  const startedMs = performance.now();
  await stream(hearth, { tokens: 1, seed: 1 });
  const after = await memory();
  console.log(`${count} aborted requests: next answer after ${(performance.now() - startedMs).toFixed(0)} ms`);
  console.log(
    `RSS server ${mb(before.server)} → ${mb(after.server)}, runner ${mb(before.runner)} → ${mb(after.runner)}`,
  );
  console.log(`runner processes ${before.pids.length} → ${after.pids.length}`);
}

async function memory(): Promise<{ server: number; runner: number; pids: number[] }> {
  const pids = await hearth.runnerPids();
  return { server: rss(hearth.pid), runner: pids.reduce((sum, pid) => sum + rss(pid), 0), pids };
}

function rss(pid: number): number {
  const found = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return 1024 * Number(found?.[1] ?? 0);
}

function mb(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MB`;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}
