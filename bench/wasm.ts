/**
 * The kernels as WebAssembly: on one thread of this process compared with the AVX2 library, and in a page of a headless
 * browser compared with wllama (llama.cpp as WebAssembly) on one thread and two. Alternated; medians.
 *
 *   bun install --cwd bench && bun bench/wasm.ts [--rounds 3] [--tokens 48] [--out FOLDER] [--record]
 */
import { join } from "node:path";
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { loadProgram } from "../src/engine/architectures/index.ts";
import type { Backend } from "../src/engine/program/backend.ts";
import { makeSimdBackend } from "../src/engine/backends/host/simd.ts";
import { wasmBackend } from "../src/engine/backends/host/wasm.ts";
import { buildForBrowser } from "../src/page/engine/build.ts";
import type { FromWorker } from "../src/page/engine/worker.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { SAMPLING_DEFAULTS } from "../src/engine/text/sampling/options.ts";
import { sayingsOf, SAID } from "../test/page/engine/chromium.ts";
import { ensureModel } from "./make-model.ts";
import { writeRecord } from "./report/record.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "3" },
    tokens: { type: "string", default: "48" },
    record: { type: "boolean", default: false },
    out: { type: "string", default: join(import.meta.dir, "out") },
  },
});
const [rounds, count] = [Number(values.rounds), Number(values.tokens)];
const path = await ensureModel("q8_0", values.out, "135m");
const median = (all: readonly number[]): number => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)]!;
const rates = new Map<string, number[]>();
const note = (what: string, rate: number): void => void rates.set(what, [...(rates.get(what) ?? []), rate]);

/** Tokens per second of one sequence in this process. */
async function decodeRate(backend: Backend): Promise<number> {
  const options = { ctxLen: count + 64, slots: 1, precise: false, cacheDir: undefined, threads: 1 };
  const session = await backend.load(loadProgram(openGguf(path)), options);
  const step = (start: number) =>
    session.run([{ slot: 0, start, tokens: Int32Array.of(300 + start), logits: "last" as const }]);
  for (let start = 0; start < 8; start++) await step(start);
  const begin = performance.now();
  for (let start = 8; start < 8 + count; start++) await step(start);
  const rate = (count / (performance.now() - begin)) * 1000;
  session.close();
  return rate;
}

const ISOLATED = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
  "cross-origin-resource-policy": "same-origin",
};
const say = `const say = (said) => fetch("${SAID}", { method: "POST", body: JSON.stringify(said) });`;
const build = await buildForBrowser();
const WLLAMA = join(import.meta.dir, "node_modules/@wllama/wllama/esm");

async function inPage<T>(script: string): Promise<T[]> {
  return sayingsOf<T>({
    script: `${say} try { ${script} } catch (error) { say({ error: String(error?.stack ?? error) }); }`,
    headers: ISOLATED,
    serve(request) {
      const { pathname } = new URL(request.url);
      const found = build.scripts.find(({ name }) => pathname === `/${name}`);
      if (found) return new Response(found.text, { headers: { "content-type": "text/javascript", ...ISOLATED } });
      if (pathname === "/model.gguf") return new Response(Bun.file(path), { headers: ISOLATED });
      if (pathname.startsWith("/wllama/"))
        return new Response(Bun.file(join(WLLAMA, pathname.slice("/wllama/".length))), { headers: ISOLATED });
      return undefined;
    },
  });
}

/** Our rate through the runner that pages use. */
async function ourRate(threads: number): Promise<number> {
  const load = {
    kind: "load",
    path: "model",
    adapters: [],
    template: {},
    backend: "wasm",
    ctxLen: 512,
    slots: 1,
    chunk: 64,
    threads,
    precise: false,
  };
  const options = { ...SAMPLING_DEFAULTS, temperature: 0, num_predict: count };
  const generate = {
    kind: "generate",
    id: 1,
    asked: { kind: "text", text: "a b c", context: [] },
    options,
    shift: false,
  };
  const said = await inPage<FromWorker>(`
    const bytes = new Uint8Array(await (await fetch("/model.gguf")).arrayBuffer());
    const worker = new Worker("/worker-main.js", { type: "module" });
    const next = [${JSON.stringify(load)}, ${JSON.stringify(generate)}];
    worker.onmessage = async ({ data }) => {
      if (data.kind === "failed") return say({ error: data.message });
      if (["mounted", "ready"].includes(data.kind)) return worker.postMessage(next.shift());
      const done = (data.events ?? []).find(({ kind }) => kind === "done");
      if (done) { await say({ kind: "events", events: [{ ...done, tokens: [] }] }); say({ done: true }); }
    };
    worker.postMessage({ kind: "mount", path: "model", file: { kind: "memory", bytes } });`);
  for (const message of said) {
    if (message.kind !== "events") continue;
    for (const event of message.events) {
      if (event.kind !== "done") continue;
      return (event.statistics.evalCount / event.statistics.evalNs) * 1e9;
    }
  }
  throw new Error("no answer");
}

async function wllamaRate(threads: number): Promise<number> {
  const said = await inPage<{ rate: number }>(`
    const { Wllama } = await import("/wllama/index.js");
    const wllama = new Wllama({ default: "/wllama/wasm/wllama.wasm" }, { suppressNativeLog: true });
    const model = new Blob([await (await fetch("/model.gguf")).arrayBuffer()]);
    await wllama.loadModel([model], { n_ctx: 512, n_threads: ${threads}, n_gpu_layers: 0 });
    const answer = await wllama.createCompletion({ prompt: "a b c", max_tokens: ${count}, temperature: 0, ignore_eos: true });
    await say({ rate: answer.timings.predicted_per_second });
    say({ done: true });`);
  return said[0]!.rate;
}

const avx2 = makeSimdBackend({ level: "avx2" });
for (let round = 0; round < rounds; round++) {
  note("process, AVX2, 1 thread", await decodeRate(avx2));
  note("process, WebAssembly, 1 thread", await decodeRate(wasmBackend));
  for (const threads of [1, 2]) {
    note(`page, ours, ${threads} threads`, await ourRate(threads));
    note(`page, wllama, ${threads} threads`, await wllamaRate(threads));
  }
}
for (const [what, all] of rates)
  console.log(`${what}: ${median(all).toFixed(1)} tokens/s (${all.map((each) => each.toFixed(1)).join(", ")})`);
const ratio = (a: string, b: string): string => (median(rates.get(a)!) / median(rates.get(b)!)).toFixed(2);
console.log(`in Bun, WebAssembly : AVX2 = ${ratio("process, WebAssembly, 1 thread", "process, AVX2, 1 thread")}`);
for (const threads of [1, 2])
  console.log(
    `in a page, ours : wllama, ${threads} = ${ratio(`page, ours, ${threads} threads`, `page, wllama, ${threads} threads`)}`,
  );
if (values.record) {
  const against = (what: string, ours: string, theirs: string, name: string) => {
    const peer = { name, rounds: rates.get(theirs)! };
    return { what, measure: "decode", unit: "tokens/s", ours: rates.get(ours)!, peer };
  };
  const inPages = [1, 2].map((threads) => {
    const of = (side: string): string => `page, ${side}, ${threads} threads`;
    return against(`135m q8_0 in a page, threads: ${threads}`, of("ours"), of("wllama"), "wllama");
  });
  const inBun = ["process, WebAssembly, 1 thread", "process, AVX2, 1 thread", "Hearth's AVX2"] as const;
  const figures = [...inPages, against("135m q8_0 in Bun, threads: 1", ...inBun)];
  writeRecord("wasm", { title: "WebAssembly", figures });
}
console.log(`load average ${loadavg()[0]!.toFixed(1)}`);
process.exit(0);
