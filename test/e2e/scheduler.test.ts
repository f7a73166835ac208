/** Loaded models and waiting requests: the real server with several small models. */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { eventually, isAlive, ndjson, startHearth, type Hearth } from "./hearth.ts";
import { createVariants } from "./variants.ts";

setDefaultTimeout(120_000);

const WAIT_MS = 60_000;
const FILE_BYTES = readFileSync(resolve(import.meta.dir, "../../models/hearth/hearth.gguf")).length;
const BUSY = { error: "server busy, please try again.  maximum pending requests exceeded" };
/** No finite text fits: the model continues until it is stopped. */
const NEVER_ENDING = {
  $ref: "#/$defs/node",
  $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } }, required: ["next"] } },
};

let hearth: Hearth;
let streams: { end(): void }[] = [];

/**
 * The servers of this file differ only in their settings; each has the models a, b and c in addition to the embedded
 * one.
 */
const serving = (env: Record<string, string>): void => {
  beforeAll(async () => {
    hearth = await startHearth({ env });
    await createVariants(hearth, ["a", "b", "c"]);
  });
  afterAll(() => hearth.stop());
  afterEach(async () => {
    for (const stream of streams) stream.end();
    streams = [];
    for (const { name } of await loaded()) await answer(name, { prompt: "", keep_alive: 0 });
    expect(await eventually(async () => (await hearth.runnerPids()).length === 0, WAIT_MS)).toBe(true);
  });
};

interface Loaded {
  readonly name: string;
  readonly model: string;
  readonly size: number;
  readonly size_vram: number;
  readonly digest: string;
  readonly context_length: number;
  readonly expires_at: string;
}

async function loaded(): Promise<Loaded[]> {
  return ((await (await fetch(`${hearth.url}/api/ps`)).json()) as { models: Loaded[] }).models;
}
const names = async (): Promise<string[]> => (await loaded()).map(({ name }) => name).sort();

async function answer(model: string, more: object = {}): Promise<{ status: number; body: any }> {
  const short = { temperature: 0, num_predict: 3 };
  const response = await hearth.post("/api/generate", {
    model,
    prompt: "Hello!",
    stream: false,
    ...more,
    options: { ...short, ...("options" in more ? (more.options as object) : {}) },
  });
  return { status: response.status, body: await response.json() };
}

const load = (model: string, more: object = {}) => answer(model, { prompt: "", ...more });

/**
 * A running answer, which continues until `end` is called. Its runner is stopped except while a test waits for more: an
 * answer without a limit ends after seconds.
 */
async function begin(model: string): Promise<{ next(): Promise<any>; resume(): void; end(): void }> {
  const abort = new AbortController();
  const before = await hearth.runnerPids();
  const body = { model, prompt: "Hello!", format: NEVER_ENDING, options: { num_predict: 100_000 } };
  const lines = ndjson(await hearth.post("/api/generate", body, abort.signal));
  expect((await lines.next()).value).toMatchObject({ done: false });
  const now = await hearth.runnerPids();
  const started = now.filter((pid) => !before.includes(pid));
  const [pid] = started.length > 0 ? started : now; // loaded before, alone
  const signal = (name: "SIGSTOP" | "SIGCONT"): void => void process.kill(pid!, name);
  signal("SIGSTOP");
  const stream = {
    async next() {
      signal("SIGCONT");
      const { value } = await lines.next();
      signal("SIGSTOP");
      return value;
    },
    resume: () => signal("SIGCONT"),
    end: () => {
      if (abort.signal.aborted) return;
      abort.abort();
      signal("SIGCONT");
    },
  };
  streams.push(stream);
  return stream;
}

/** The pid of a new runner; a process that is still a fork of the server does not count. */
async function startedRunner(before: readonly number[]): Promise<number | undefined> {
  const pid = (await hearth.runnerPids()).find((each) => !before.includes(each));
  const command = pid === undefined ? "" : await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return command.split("\0").includes("runner") ? pid : undefined;
}

const waiting = async (): Promise<number> => (await hearth.activity()).waiting;

describe("with default settings", () => {
  serving({});

  test("GET /api/ps · size is the bytes of the weights and of the KV cache of all slots", async () => {
    const sizeAt = async (num_ctx: number): Promise<number> => {
      await load("a", { options: { num_ctx } });
      const [model] = await loaded();
      expect(model).toMatchObject({ name: "a:latest", context_length: num_ctx });
      return model!.size;
    };
    const [small, middle, large] = [await sizeAt(512), await sizeAt(1024), await sizeAt(2048)];
    const perToken = (middle - small) / 512;
    expect(large - middle).toBe(1024 * perToken);
    const values = 4 * 2 * 6 * 2 * 64; // slots, keys and values, layers, heads, values of each
    expect([2 * values, 4 * values]).toContain(perToken); // half or single floats
    const weights = small - 512 * perToken;
    expect(weights).toBeGreaterThan(0.9 * FILE_BYTES);
    expect(weights).toBeLessThan(6 * FILE_BYTES); // at worst 8 bits became 32, and buffers take 9 MB
  });

  test("GET /api/ps · size_vram is the bytes on a GPU, and digest the one in /api/tags", async () => {
    await load("a");
    const [model] = await loaded();
    if (hearth.greeting.includes("CPU")) expect(model!.size_vram).toBe(0);
    else expect(model!.size_vram).toBeLessThanOrEqual(model!.size);
    const { models } = (await (await fetch(`${hearth.url}/api/tags`)).json()) as { models: Loaded[] };
    expect(model!.digest).toBe(models.find(({ name }) => name === "a:latest")!.digest);
  });

  test("GET /api/ps · expires_at is keep_alive after the last use; the model that expires last is first", async () => {
    const leftOf = async (name: string): Promise<number> => {
      const model = (await loaded()).find((each) => each.name === name);
      return (Date.parse(model!.expires_at) - Date.now()) / 1000;
    };
    await load("a", { keep_alive: "10m" });
    await load("b", { keep_alive: -1 });
    await load("c");
    expect((await loaded()).map(({ name }) => name)).toEqual(["b:latest", "a:latest", "c:latest"]);
    expect(await leftOf("a:latest")).toBeWithin(300, 600.1);
    expect(await leftOf("b:latest")).toBeGreaterThan(1e8);
    expect(await leftOf("c:latest")).toBeWithin(100, 300.1);
    const before = (await loaded()).find(({ name }) => name === "a:latest")!.expires_at;
    await answer("a");
    expect(Date.parse((await loaded()).find(({ name }) => name === "a:latest")!.expires_at)).toBeGreaterThan(
      Date.parse(before),
    );
  });

  test("several models are loaded at once, each in a process of its own, and answer at the same time", async () => {
    const running = [await begin("a"), await begin("b"), await begin("c")];
    expect(await names()).toEqual(["a:latest", "b:latest", "c:latest"]);
    expect(new Set(await hearth.runnerPids()).size).toBe(3);
    for (const each of [...running, ...running]) expect(await each.next()).toMatchObject({ done: false });
  });

  test("models that share their weights share a process, under the name that loaded it", async () => {
    await hearth.post("/api/copy", { source: "a", destination: "twin" });
    const first = await answer("a");
    const pids = await hearth.runnerPids();
    expect((await answer("twin")).body).toMatchObject({ model: "twin", response: first.body.response });
    expect([await hearth.runnerPids(), await names()]).toEqual([pids, ["a:latest"]]);
  });

  test("other models finish and start answers while a model loads", async () => {
    const stream = await begin("a");
    const before = await hearth.runnerPids();
    let loading: ReturnType<typeof load> | undefined;
    let stopped: number | undefined;
    for (let i = 0; i < 10 && stopped === undefined; i++) {
      loading = load("b");
      while ((stopped = await startedRunner(before)) === undefined) continue;
      process.kill(stopped, "SIGSTOP"); // stopping the runner prolongs the load at will
      if (!(await names()).includes("b:latest")) break;
      process.kill(stopped, "SIGCONT"); // it existed before this test
      await loading;
      await load("b", { keep_alive: 0 });
      stopped = undefined;
    }
    expect(stopped).toBeDefined();
    try {
      for (let i = 0; i < 50; i++) expect(await stream.next()).toMatchObject({ done: false });
      stream.resume();
      expect((await answer("a")).body).toMatchObject({ done: true, eval_count: 3 });
      expect(await names()).toEqual(["a:latest"]);
    } finally {
      process.kill(stopped!, "SIGCONT");
    }
    expect((await loading!).body).toMatchObject({ done: true, done_reason: "load" });
    expect(await names()).toEqual(["a:latest", "b:latest"]);
  });

  test("another num_ctx loads the model again once its requests are done; other options do not", async () => {
    await load("a", { options: { num_ctx: 1024 } });
    const [pid] = await hearth.runnerPids();
    await answer("a", { options: { num_ctx: 1024, temperature: 1, top_k: 3, seed: 1 } });
    expect(await hearth.runnerPids()).toEqual([pid!]);
    const stream = await begin("a");
    const other = answer("a", { options: { num_ctx: 512 } });
    expect(await eventually(async () => (await waiting()) === 1, WAIT_MS)).toBe(true);
    for (let i = 0; i < 20; i++) expect(await stream.next()).toMatchObject({ done: false });
    expect([await isAlive(pid!), (await loaded())[0]!.context_length]).toEqual([true, 1024]);
    stream.end();
    expect((await other).body).toMatchObject({ done: true });
    expect((await loaded())[0]!.context_length).toBe(512);
    expect(await hearth.runnerPids()).not.toContain(pid!);
  });
});

describe("with room for two models", () => {
  serving({ HEARTH_MAX_LOADED_MODELS: "2", HEARTH_NUM_PARALLEL: "1", HEARTH_MAX_QUEUE: "1" });

  test("a third model replaces the idle one with the oldest use", async () => {
    for (const model of ["a", "b", "a"]) await answer(model);
    await answer("c");
    expect(await names()).toEqual(["a:latest", "c:latest"]);
    await answer("b");
    expect(await names()).toEqual(["b:latest", "c:latest"]);
  });

  test("the time of a model's last use is the end of its answer", async () => {
    const stream = await begin("a");
    await answer("b");
    stream.end();
    expect(await eventually(async () => (await hearth.activity()).running === 0, WAIT_MS)).toBe(true);
    await answer("c");
    expect(await names()).toEqual(["a:latest", "c:latest"]);
  });

  test("a busy model stays loaded, though its request is the oldest", async () => {
    const stream = await begin("a");
    await answer("b");
    await answer("c");
    expect(await names()).toEqual(["a:latest", "c:latest"]);
    expect(await stream.next()).toMatchObject({ done: false });
  });

  test("503 · a request to a busy model with a full queue is refused, and the queued one is served later", async () => {
    const stream = await begin("a");
    const queued = answer("a");
    expect(await eventually(async () => (await waiting()) === 1, WAIT_MS)).toBe(true);
    for (const path of ["/api/generate", "/api/chat", "/api/embed"]) {
      for (const more of [{}, { stream: false }]) {
        const messages = [{ role: "user", content: "Hello!" }];
        const response = await hearth.post(path, { model: "a", prompt: "Hello!", messages, input: "Hello!", ...more });
        expect([path, response.status, await response.json()]).toEqual([path, 503, BUSY]);
      }
    }
    expect(await answer("b")).toMatchObject({ status: 200, body: { done: true } }); // another model is not busy
    stream.end();
    expect(await queued).toMatchObject({ status: 200, body: { done: true } });
  });

  test("503 · a load is refused if all models are busy and the queue is full, and the queued one is served later", async () => {
    const streams = [await begin("a"), await begin("b")];
    const queued = answer("c");
    expect(await eventually(async () => (await waiting()) === 1, WAIT_MS)).toBe(true);
    expect(await answer("hearth")).toEqual({ status: 503, body: BUSY });
    for (const stream of streams) expect(await stream.next()).toMatchObject({ done: false });
    for (const stream of streams) stream.end();
    expect(await queued).toMatchObject({ status: 200, body: { done: true } });
    expect(await names()).toContain("c:latest");
  });

  test("a queued client that disconnects makes room in the queue", async () => {
    const streams = [await begin("a"), await begin("b")];
    const gone = new AbortController();
    const left = hearth.post("/api/generate", { model: "c", prompt: "" }, gone.signal).catch(() => undefined);
    expect(await eventually(async () => (await waiting()) === 1, WAIT_MS)).toBe(true);
    gone.abort();
    await left;
    expect(await eventually(async () => (await waiting()) === 0, WAIT_MS)).toBe(true);
    const queued = load("hearth");
    for (const stream of streams) stream.end();
    expect(await queued).toMatchObject({ status: 200, body: { done_reason: "load" } });
  });
});
