/** The engine in a Worker of a page, from the bundle that pages get, with the embedded model. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseKernels } from "../../../src/base/kernel-tuning.ts";
import { buildForBrowser, type BrowserBuild } from "../../../src/page/engine/build.ts";
import type { FromWorker, ToWorker } from "../../../src/page/engine/worker.ts";
import { SAMPLING_DEFAULTS } from "../../../src/engine/text/sampling/options.ts";
import { QUICK_KERNELS } from "../../engine/backends/webgpu/swiftshader.ts";
import { generate, isOf, LOAD, spawnRunner } from "../../engine/runner/spawned.ts";
import { browserRefusal, SAID, sayingsOf } from "./chromium.ts";
import { ranged } from "./ranged.ts";
import { freePort } from "../../free-port.ts";

const MODEL = resolve(import.meta.dir, "../../../models/hearth/hearth.gguf");
/** With 8-bit activations, backends answer them with different tokens. */
const PROMPTS = ["Once upon a time", "In 1999,", "One day, a cat named", "从前有一个"];
const COUNT = 32;
/** Tokens on the software GPU, which takes a fifth of a second for each: the first ones of the server's answers. */
const GPU_COUNT = 12;
/** Headers that let a page share memory with its Workers. */
const ISOLATED = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
};
/** Maximum number of bytes that a page may load before it generates. */
const BYTES_MAX = 535_000;

let build: BrowserBuild;
let home = "";
beforeAll(async () => {
  build = await buildForBrowser();
  home = await mkdtemp(join(tmpdir(), "hearth-browser-"));
});
// A closing browser still writes to its profile.
afterAll(() => rm(home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));

const load = {
  kind: "load",
  path: "model",
  adapters: [],
  template: { go: undefined, prefersGo: undefined },
  gpuLayers: undefined,
  gpuMemory: undefined,
  ctxLen: 128,
  slots: 1,
  chunk: 64,
  threads: 1,
  precise: false,
  cacheDir: undefined,
} as const;

/** Messages for a Worker, some of them at once. */
type Messages = readonly (ToWorker | readonly ToWorker[])[];

/** Sends the messages to a Worker, each after the earlier ones were answered; posts all of the Worker's messages. */
const scriptOf = (messages: Messages): string => `
  const say = (said) => fetch("${SAID}", { method: "POST", body: JSON.stringify(said) });
  const messages = ${JSON.stringify(messages)};
  const worker = new Worker("/worker-main.js", { type: "module" });
  worker.onerror = (event) => void say({ error: event.message || "the Worker did not start" });
  let last = Promise.resolve(), asked = 0;
  const next = async () => {
    if (--asked > 0) return;
    if (messages.length === 0) return void last.then(() => say({ done: true }));
    const some = [messages.shift()].flat();
    asked = some.length;
    for (const message of some) {
      if (message.file?.kind === "memory") message.file.bytes = new Uint8Array(await (await fetch("/model")).arrayBuffer());
      worker.postMessage(message);
    }
  };
  worker.onmessage = ({ data }) => {
    for (const event of data.events ?? []) if (event.kind === "done") event.tokens = [...event.tokens];
    last = last.then(() => say(data));
    const ends = data.kind === "events" && data.events.some(({ kind }) => kind === "done" || kind === "error");
    if (ends || ["mounted", "stored", "models", "removed", "ready", "failed"].includes(data.kind)) next();
  };
  next();`;

/** A Worker's answers to these messages. */
function sayings(
  messages: Messages,
  more: {
    profile?: string;
    port?: number;
    seen?: (request: Request) => Response | undefined;
    headers?: Record<string, string>;
  } = {},
): Promise<FromWorker[]> {
  const { seen, ...place } = more;
  return sayingsOf<FromWorker>({
    ...place,
    script: scriptOf(messages),
    serve(request) {
      const other = seen?.(request);
      if (other) return other;
      const { pathname } = new URL(request.url);
      if (pathname === "/model") return ranged(request, MODEL);
      const script = build.scripts.find(({ name }) => pathname === `/${name}`);
      return script && new Response(script.text, { headers: { "content-type": "text/javascript", ...more.headers } });
    },
  });
}

let servers: Promise<number[][]> | undefined;
/** The server's own answers to the prompts: ids of each prompt and of its answer. */
const serverTokens = (): Promise<number[][]> => (servers ??= askServer());
async function askServer(): Promise<number[][]> {
  const runner = spawnRunner();
  try {
    runner.send(LOAD);
    await runner.hear(isOf("ready"));
    runner.send(...ALL);
    const ends = await Promise.all(PROMPTS.map((_, id) => runner.end(id)));
    return ends.map((event) => {
      if (event.kind !== "done") throw new Error(`the server's answer ended with ${event.kind}`);
      return [...event.tokens];
    });
  } finally {
    runner.child.kill();
  }
}

const asking = (count: number) => PROMPTS.map((text, id) => generate(id, text, { num_predict: count }));
const ALL = asking(COUNT);

const readyOf = (said: readonly FromWorker[]) =>
  said.flatMap((message) => (message.kind === "ready" ? [message.info] : []));

/** The ids that each answer ended with: of the prompt and of the answer. */
function tokensOf(said: readonly FromWorker[]): number[][] {
  const answers = new Map<number, number[]>();
  for (const message of said) {
    if (message.kind === "failed") throw new Error(message.message);
    if (message.kind !== "events") continue;
    for (const event of message.events) {
      if (event.kind === "done") answers.set(event.id, [...event.tokens]);
      if (event.kind === "error") throw new Error(event.message);
    }
  }
  if (answers.size === 0) throw new Error("no answer");
  return [...answers].sort(([a], [b]) => a - b).map(([, tokens]) => tokens);
}

test("the scripts before the first answer are small, and do not include the grammar library", () => {
  const eager = build.scripts.filter(({ lazy }) => !lazy).map(({ text }) => text);
  const bytes = eager.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  console.log(`the Worker's script: ${bytes} bytes before the grammar library`);
  expect(bytes).toBeLessThan(BYTES_MAX);
  expect(build.scripts.some(({ lazy, text }) => lazy && text.length > 500_000)).toBe(true);
});

const refusal = await browserRefusal();
describe.skipIf(refusal !== undefined)(`in a Worker of a headless browser${refusal ? ` (${refusal})` : ""}`, () => {
  test("WebGPU gives the server's greedy tokens", async () => {
    const memory = { kind: "mount", path: "model", file: { kind: "memory", bytes: new Uint8Array() } } as const;
    const gpuKernels = parseKernels(QUICK_KERNELS);
    const asked = asking(GPU_COUNT);
    const said = await sayings([memory, { ...load, backend: "webgpu", slots: asked.length, gpuKernels }, asked]);
    expect(readyOf(said)).toMatchObject([{ backend: "webgpu" }]);
    const expected = (await serverTokens()).map((tokens) => tokens.slice(0, tokens.length - COUNT + GPU_COUNT));
    expect(tokensOf(said)).toEqual(expected);
  }, 240_000); // a software GPU; a step for four answers takes as long as for one

  test("the reference backend gives the server's greedy tokens", async () => {
    const memory = { kind: "mount", path: "model", file: { kind: "memory", bytes: new Uint8Array() } } as const;
    const said = await sayings([memory, { ...load, backend: "cpu" }, ALL[0]!]);
    expect(tokensOf(said)).toEqual((await serverTokens()).slice(0, 1));
  }, 120_000);

  test.each([
    { page: "any page", threads: 1, headers: {} },
    { page: "an isolated page, on two threads", threads: 2, headers: ISOLATED },
  ])(
    "WebAssembly gives the server's greedy tokens in $page",
    async ({ threads, headers }) => {
      const memory = { kind: "mount", path: "model", file: { kind: "memory", bytes: new Uint8Array() } } as const;
      const said = await sayings([memory, { ...load, backend: "auto", threads: 2 }, ...ALL], { headers });
      const device = `CPU (${threads} thread${threads > 1 ? "s" : ""}, WebAssembly, float32)`;
      expect(readyOf(said)).toMatchObject([{ backend: "wasm", device }]);
      expect(tokensOf(said)).toEqual(await serverTokens());
    },
    120_000,
  );

  test("a model is read from a URL, in ranges, and a format loads the grammar library", async () => {
    const url = { kind: "mount", path: "model", file: { kind: "url", url: "/model" } } as const;
    const options = { ...SAMPLING_DEFAULTS, temperature: 0, num_predict: 40 };
    const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] };
    const said = await sayings([url, { ...load, backend: "wasm" }, { ...ALL[0]!, format: schema, options }]);
    const text = said
      .flatMap((message) => (message.kind === "events" ? message.events : []))
      .flatMap((event) => (event.kind === "text" ? [event.text] : []))
      .join("");
    expect(JSON.parse(text)).toEqual({ ok: expect.any(Boolean) });
  }, 120_000);

  test("a missing file and a backend that pages do not have are errors that name them", async () => {
    const firstOf = async (message: ToWorker) => (await sayings([message]))[0];
    const missing = await firstOf({ kind: "mount", path: "model", file: { kind: "stored", name: "none.gguf" } });
    expect(missing).toMatchObject({ kind: "failed", code: "not_found" });
    const unmounted = await firstOf({ ...load, backend: "cpu" });
    expect(unmounted).toMatchObject({ kind: "failed", code: "not_found", message: "model: no such file" });
    const onnx = await firstOf({ ...load, backend: "onnx" });
    const message = expect.stringMatching(/webgpu, wasm, cpu/);
    expect(onnx).toMatchObject({ kind: "failed", code: "unsupported", message });
  }, 120_000);

  test("a model is stored in the page, its download resumes after an error, and a second visit finds it", async () => {
    const profile = await mkdtemp(join(home, "profile-"));
    const port = freePort();
    const ranges: string[] = [];
    let fails = true;
    const seen = (request: Request): Response | undefined => {
      const range = request.headers.get("range");
      if (new URL(request.url).pathname !== "/model" || range === null) return undefined;
      ranges.push(range);
      return fails && ranges.length > 1 ? new Response("", { status: 503 }) : undefined;
    };
    const name = "sha256-of-it.gguf";
    const store = { kind: "store", download: { name, url: "/model" } } as const;
    const broken = await sayings([store], { profile, port, seen });
    expect(broken.at(-1)).toMatchObject({
      kind: "failed",
      code: "upstream",
      message: expect.stringMatching(/status 503/),
    });
    fails = false;
    ranges.length = 0;
    const stored = await sayings([{ kind: "list" }, store, { kind: "list" }], { profile, port, seen });
    expect(stored[0]).toEqual({ kind: "models", names: [] });
    expect(stored.at(-1)).toEqual({ kind: "models", names: [name] });
    expect(ranges[0]).toStartWith("bytes=4194304-"); // after the first piece
    ranges.length = 0;
    const mount = { kind: "mount", path: "model", file: { kind: "stored", name } } as const;
    const said = await sayings([store, mount, { ...load, backend: "wasm" }, ALL[0]!], { profile, port, seen });
    expect(ranges).toEqual([]); // nothing over the network
    const memory = { kind: "mount", path: "model", file: { kind: "memory", bytes: new Uint8Array() } } as const;
    const expected = await sayings([memory, { ...load, backend: "wasm" }, ALL[0]!]);
    expect(tokensOf(said)).toEqual(tokensOf(expected));
    const gone = await sayings([{ kind: "remove", name }, mount], { profile, port });
    expect(gone.map(({ kind }) => kind)).toEqual(["removed", "failed"]);
  }, 180_000);
});
