/** Hearth as a user runs it: the real command, the embedded model, real signals. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { VERSION } from "../../src/base/version.ts";
import { eventually, isAlive, ndjson, runHearth, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

const MODEL = "hearth";
const PROMPT = "Tell me a story about a fox.";
/** A schema that no finite text fits: the model cannot stop by itself. */
const NEVER_ENDING = {
  $ref: "#/$defs/node",
  $defs: {
    node: {
      type: "object",
      properties: { next: { $ref: "#/$defs/node" } },
      required: ["next"],
      additionalProperties: false,
    },
  },
};
const ENDLESS = { model: MODEL, prompt: PROMPT, format: NEVER_ENDING, options: { num_predict: 4000, seed: 3 } };
/** As long as allowed: at least a minute. */
const LONGEST = { ...ENDLESS, options: { ...ENDLESS.options, num_predict: -1 } };

let hearth: Hearth;
beforeAll(async () => {
  hearth = await startHearth();
});
afterAll(() => hearth.stop());

test("a spare runner starts before the first model, is not listed by ps, and ends with the server", async () => {
  const own = await startHearth({ env: { HEARTH_SPARE_RUNNER: "true" } });
  const waits = async (): Promise<boolean> => (await own.runnerPids()).length === 1;
  expect(await eventually(waits)).toBe(true);
  const [pid] = await own.runnerPids();
  const loaded = async () => ((await (await fetch(`${own.url}/api/ps`)).json()) as { models: unknown[] }).models.length;
  expect(await loaded()).toBe(0);
  await (
    await own.post("/api/generate", { model: MODEL, prompt: "Hi", stream: false, options: { num_predict: 1 } })
  ).json();
  expect(await loaded()).toBe(1);
  expect(await own.runnerPids()).toContain(pid!);
  own.process.kill("SIGTERM");
  await own.process.exited;
  expect(await eventually(async () => !(await isAlive(pid!)))).toBe(true);
  await own.stop();
});

test.skipIf(process.platform === "win32")(
  "SIGHUP, which others send for new settings, does not stop a server without a terminal",
  async () => {
    hearth.process.kill("SIGHUP");
    expect(await eventually(() => hearth.log().some((line) => line.includes("SIGHUP has no effect")))).toBe(true);
    expect((await fetch(`${hearth.url}/api/version`)).status).toBe(200);
  },
);

async function generate(options: object = {}, more: object = {}): Promise<any> {
  const reply = await hearth.post("/api/generate", { model: MODEL, prompt: PROMPT, stream: false, options, ...more });
  expect(reply.status).toBe(200);
  return reply.json();
}

test("an answer whose schema never ends stops after 512 tokens if the request sets no limit", async () => {
  const { options, ...unbounded } = ENDLESS;
  expect(await generate({ seed: options.seed }, unbounded)).toMatchObject({ done_reason: "length", eval_count: 512 });
});

test("start-up prints one line with the address, the backend that auto selects, its device and the store", async () => {
  const { url, home, greeting } = hearth;
  const { code, stdout } = await runHearth(["devices", "--backend", "auto"], { home });
  expect(code).toBe(0);
  const { backend, gpu } = JSON.parse(stdout);
  expect(["webgpu", "simd", "onnx", "cpu"]).toContain(backend);
  const device = gpu ?? `CPU (${availableParallelism()} cores)`;
  const normalized = greeting.replace(/ cores, [\w.+ -]+\)/, " cores)"); // kernels that are tested already are named
  const store = join(home, ".hearth", "models");
  expect(normalized).toBe(`Hearth ${VERSION} listens on ${url} · backend ${backend} · ${device} · models ${store}`);
});

test("a streamed answer comes in pieces and ends with true statistics", async () => {
  const startedMs = performance.now();
  const lines: any[] = [];
  const body = {
    model: MODEL,
    messages: [{ role: "user", content: "Hello! Who are you?" }],
    options: { num_predict: 40 },
  };
  for await (const line of ndjson(await hearth.post("/api/chat", body))) lines.push(line);
  const tookNs = (performance.now() - startedMs) * 1e6;
  const last = lines.at(-1);
  expect(lines.length).toBeGreaterThan(3);
  expect(last).toMatchObject({ done: true, message: { role: "assistant", content: "" } });
  for (const key of ["total_duration", "load_duration", "prompt_eval_duration", "eval_duration", "prompt_eval_count"]) {
    expect(last[key]).toBeInteger();
    expect(last[key]).toBeGreaterThan(0);
  }
  expect(last.total_duration).toBeLessThanOrEqual(tookNs);
  expect(last.prompt_eval_duration + last.eval_duration).toBeLessThanOrEqual(last.total_duration);
  expect(lines.length - 1).toBeLessThanOrEqual(last.eval_count);
});

test("the same seed gives the same text, even while other requests run", async () => {
  const options = { seed: 42, temperature: 0.9, num_predict: 60 };
  const alone = await generate(options);
  const others = Array.from({ length: 3 }, (_, i) => generate({ seed: i, temperature: 1, num_predict: 120 }));
  const busy = await generate(options);
  await Promise.all(others);
  expect(busy.response).toBe(alone.response);
  expect((await generate({ ...options, seed: 43 })).response).not.toBe(alone.response);
});

test("a context continues the conversation that it came from", async () => {
  const first = await generate({ temperature: 0, num_predict: 20 });
  expect(first.context.length).toBe(first.prompt_eval_count + first.eval_count);
  const second = await generate({ temperature: 0, num_predict: 5 }, { prompt: "And then?", context: first.context });
  expect(second.context.slice(0, first.context.length)).toEqual(first.context);
  expect(second.prompt_eval_count).toBeGreaterThan(first.context.length);
});

test("format json gives an object, and a schema an answer that fits it", async () => {
  const json = await generate({ temperature: 0, num_predict: 200 }, { format: "json" });
  expect(json.done_reason).toBe("stop");
  expect(JSON.parse(json.response)).toBeObject();
  const schema = {
    type: "object",
    properties: { name: { enum: ["Ann", "Bob"] }, age: { type: "integer", minimum: 1, maximum: 9 } },
    required: ["name", "age"],
    additionalProperties: false,
  };
  for (const seed of [1, 2, 3]) {
    const { response } = await generate({ temperature: 1.2, seed, num_predict: 100 }, { format: schema });
    const { name, age, ...rest } = JSON.parse(response);
    expect(["Ann", "Bob"]).toContain(name);
    expect(age >= 1 && age <= 9 && Object.keys(rest).length === 0).toBe(true);
  }
});

test("a full context shifts, and the answer continues", async () => {
  const answer = await generate({ num_ctx: 64, num_predict: 200, temperature: 1, seed: 5, num_keep: 8 }, { raw: true });
  expect(answer.done).toBe(true);
  expect(answer.eval_count).toBeLessThanOrEqual(200);
  await generate({ num_predict: 1 }, { options: { num_ctx: 2048 } });
});

/** Sequences that a model decodes at once. */
const SLOTS = 4;

/** Takes a slot. If two run endlessly, the earlier one ends first. */
async function hold() {
  const abort = new AbortController();
  const reply = await hearth.post("/api/generate", LONGEST, abort.signal);
  const first = Promise.withResolvers<void>();
  const held = { hasEnded: false, hangUp: () => abort.abort() };
  const ended = (async () => {
    for await (const line of ndjson(reply)) {
      if (line["done"] !== false) throw new Error(`it ended: ${JSON.stringify(line)}`);
      first.resolve();
    }
  })();
  ended.catch((error: unknown) => {
    held.hasEnded = true;
    first.reject(error);
  });
  await first.promise;
  return held;
}

test("a client that disconnects stops its generation, and a queued request gets its slot", async () => {
  const others = [await hold(), await hold(), await hold()];
  const last = await hold();
  const waiting = generate({ num_predict: 1 });
  const metrics = async (): Promise<string> => (await fetch(`${hearth.url}/metrics/vllm`)).text();
  expect(await eventually(async () => /^vllm:num_requests_waiting\S* 1$/m.test(await metrics()))).toBe(true);
  last.hangUp();
  expect((await waiting).done).toBe(true);
  expect(others.map((each) => each.hasEnded)).toEqual([false, false, false]);
  expect(await eventually(() => hearth.log().some((each) => each.includes("went away")))).toBe(true);
  for (const each of others) each.hangUp();
});

test("a runner that is killed mid-answer ends the stream with an error, and the next request gets a fresh one", async () => {
  await generate({ num_predict: 1 });
  const [pid] = await hearth.runnerPids();
  const lines: any[] = [];
  const reply = await hearth.post("/api/generate", ENDLESS);
  for await (const line of ndjson(reply)) {
    if (lines.push(line) === 2) process.kill(pid!, "SIGKILL");
  }
  expect(lines.at(-1).error).toContain("model runner has unexpectedly stopped");
  expect(lines.at(-1).done).toBeUndefined();
  expect((await generate({ num_predict: 3 })).done).toBe(true);
  expect(await hearth.runnerPids()).not.toContain(pid!);
});

test("keep_alive 0 unloads the model, an empty prompt loads it, and ps shows it", async () => {
  const unload = await generate({}, { prompt: "", keep_alive: 0 });
  expect(unload).toMatchObject({ done: true, done_reason: "unload", response: "" });
  const models = async (): Promise<any[]> => ((await (await fetch(`${hearth.url}/api/ps`)).json()) as any).models;
  expect(await eventually(async () => (await models()).length === 0)).toBe(true);
  expect(await eventually(async () => (await hearth.runnerPids()).length === 0)).toBe(true);
  expect(await generate({}, { prompt: "" })).toMatchObject({ done: true, done_reason: "load", response: "" });
  const [model] = await models();
  expect(model).toMatchObject({ name: "hearth:latest", size_vram: 0, context_length: 2048 });
  expect(model.size).toBeGreaterThan(1e6);
  expect(new Date(model.expires_at).getTime()).toBeGreaterThan(Date.now() + 200_000);
});

test("num_batch reloads the model, temperature does not", async () => {
  await generate({ num_predict: 1 });
  const before = await hearth.runnerPids();
  await generate({ num_predict: 1, temperature: 0.1 });
  expect(await hearth.runnerPids()).toEqual(before);
  await generate({ num_predict: 1, num_batch: 128 });
  const after = await hearth.runnerPids();
  expect(after).not.toEqual(before);
  await generate({ num_predict: 1 }); // keeps the loaded batch size
  expect(await hearth.runnerPids()).toEqual(after);
});

test("no request stays active after forty are aborted at random moments", async () => {
  await generate({ num_predict: 1 });
  const [pid] = await hearth.runnerPids();
  const first = await hold();
  const random = (i: number): number => ((i * 7919) % 97) / 97;
  const one = async (i: number): Promise<void> => {
    const body = { ...LONGEST, prompt: `${PROMPT} ${i}` };
    const signal = AbortSignal.timeout(10 + Math.floor(random(i) * 150));
    await hearth
      .post("/api/generate", body, signal)
      .then((reply) => reply.text())
      .catch(() => {});
  };
  for (let i = 0; i < 40; i += 8) await Promise.all(Array.from({ length: 8 }, (_, k) => one(i + k)));
  const held = [first];
  while (held.length < SLOTS) held.push(await hold()); // frees every slot
  expect(first.hasEnded).toBe(false);
  for (const each of held) each.hangUp();
  expect(await hearth.runnerPids()).toEqual([pid!]);
});

describe("start and stop", () => {
  const home = mkdtempSync(join(tmpdir(), "hearth-start-"));
  afterAll(() => rmSync(home, { recursive: true, force: true }));

  test("a port in use is an error of one line with exit code 1", async () => {
    const { code, stdout, stderr } = await runHearth(["serve"], {
      home,
      env: { HEARTH_HOST: new URL(hearth.url).host },
    });
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(stderr).toContain("already in use");
  });

  test("a store that cannot be read is an error of one line with exit code 1", async () => {
    const models = join(home, "not-a-folder");
    writeFileSync(models, "");
    const { code, stderr } = await runHearth(["serve"], { home, env: { HEARTH_MODELS: models } });
    expect(code).toBe(1);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(stderr).toContain(models);
  });

  test("a bad setting is an error of one line with exit code 1", async () => {
    for (const env of [{ HEARTH_NUM_PARALLEL: "many" }, { HEARTH_BACKEND: "abacus" }, { HEARTH_HOST: "host:99999" }]) {
      const { code, stderr } = await runHearth(["serve"], { home, env });
      expect(code).toBe(1);
      expect(stderr.trim().split("\n")).toHaveLength(1);
      expect(stderr).toContain(Object.keys(env)[0]!);
    }
    const config = join(home, "bad.json5");
    writeFileSync(config, "{ hosst: '127.0.0.1' }");
    const { code, stderr } = await runHearth(["serve", "--config", config], { home });
    expect(code).toBe(1);
    expect(stderr).toContain("hosst");
  });

  /** A server with a model, whose runner is stopped while it is to answer: the answer comes when it may. */
  async function startAnswering(env: Record<string, string>) {
    const own = await startHearth({ env });
    await (await own.post("/api/generate", { model: MODEL, prompt: "" })).text();
    const runners = await own.runnerPids();
    expect(runners).not.toEqual([]);
    for (const pid of runners) process.kill(pid, "SIGSTOP");
    const body = { model: MODEL, prompt: PROMPT, stream: false, options: { num_predict: 40 } };
    const answer = own.post("/api/generate", body).then((reply) => reply.json());
    expect(await eventually(async () => (await own.activity()).running === 1)).toBe(true);
    return { own, runners, answer };
  }

  test("SIGTERM lets a running answer finish, refuses new requests and ends every runner", async () => {
    const env = { HEARTH_DRAIN_DELAY: "100ms", HEARTH_SHUTDOWN_GRACE: "5m" };
    const { own, runners, answer } = await startAnswering(env);
    try {
      own.process.kill("SIGTERM");
      const isRefused = (): Promise<boolean> =>
        fetch(own.url, { keepalive: false }).then(
          () => false,
          () => true,
        );
      expect(await eventually(isRefused)).toBe(true);
      for (const pid of runners) process.kill(pid, "SIGCONT");
      expect(await answer).toMatchObject({ done: true });
      await own.process.exited;
      expect(own.process.exitCode).toBe(0);
      for (const pid of runners) expect(await isAlive(pid)).toBe(false);
    } finally {
      await own.stop();
    }
  });

  test("after SIGTERM, for HEARTH_DRAIN_DELAY, /readyz answers 503 and other requests are served", async () => {
    const own = await startHearth({ env: { HEARTH_DRAIN_DELAY: "10m" } });
    const status = async (path: string): Promise<number> => (await fetch(own.url + path)).status;
    try {
      expect(await status("/readyz")).toBe(200);
      own.process.kill("SIGTERM");
      expect(await eventually(async () => (await status("/readyz")) === 503)).toBe(true);
      const others = ["/livez", "/startupz", "/api/tags"].map(status);
      expect(await Promise.all(others)).toEqual([200, 200, 200]);
      own.process.kill("SIGTERM");
      expect(await own.process.exited).toBe(1);
    } finally {
      await own.stop();
    }
  });

  test("SIGTERM ends an answer that outlasts HEARTH_SHUTDOWN_GRACE with an error that says why", async () => {
    const { own, answer } = await startAnswering({ HEARTH_SHUTDOWN_GRACE: "1s" });
    try {
      own.process.kill("SIGTERM");
      expect(await answer).toEqual({ error: "the server is shutting down" });
      await own.process.exited;
      expect(own.process.exitCode).toBe(0);
    } finally {
      await own.stop();
    }
  });

  test("SIGTERM ends a pull at once with an error that says why", async () => {
    using registry = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch: () => new Promise(() => {}) });
    const own = await startHearth();
    try {
      const model = `http://127.0.0.1:${registry.port}/library/slow`;
      const steps = ndjson(await own.post("/api/pull", { model, insecure: true }));
      expect((await steps.next()).value).toEqual({ status: "pulling manifest" });
      own.process.kill("SIGTERM");
      expect((await steps.next()).value).toEqual({ error: "the server is shutting down" });
      await own.process.exited;
      expect(own.process.exitCode).toBe(0);
    } finally {
      await own.stop();
    }
  });

  test("every runner ends after kill -9 of the server", async () => {
    const own = await startHearth();
    await own.post("/api/generate", { model: MODEL, prompt: "" });
    const [pid] = await own.runnerPids();
    expect(await isAlive(pid!)).toBe(true);
    await own.stop();
    expect(await eventually(async () => !(await isAlive(pid!)))).toBe(true);
  });

  test("a second server on a store serves its models and refuses changes", async () => {
    const models = join(home, "shared");
    const first = await startHearth({ env: { HEARTH_MODELS: models }, isBare: true });
    const second = await startHearth({ env: { HEARTH_MODELS: models }, isBare: true });
    const copyOn = (server: Hearth) => server.post("/api/copy", { source: "hearth", destination: "copied" });
    try {
      const refused = await copyOn(second);
      expect([refused.status, await refused.json()]).toEqual([
        409,
        { error: `the model store is in use by process ${first.process.pid}: stop that one first` },
      ]);
      expect(await (await fetch(`${second.url}/api/tags`)).json()).toMatchObject({
        models: [{ name: "hearth:latest" }],
      });
      expect((await copyOn(first)).status).toBe(200);
      await first.stop();
      const removed = await fetch(`${second.url}/api/delete`, { method: "DELETE", body: '{"model":"copied"}' });
      expect(removed.status).toBe(200); // the first one's slot is free
    } finally {
      await first.stop();
      await second.stop();
    }
  });

  test("a store that another server made is served in place, even if it is read-only", async () => {
    const models = join(home, "models");
    const first = await startHearth({ env: { HEARTH_MODELS: models }, isBare: true });
    expect(await (await fetch(`${first.url}/api/tags`)).json()).toMatchObject({ models: [{ name: "hearth:latest" }] });
    await first.stop();
    mkdirSync(join(models, "manifests/registry.ollama.ai/library/other"), { recursive: true });
    const manifest = await Bun.file(join(models, "manifests/registry.ollama.ai/library/hearth/latest")).text();
    writeFileSync(join(models, "manifests/registry.ollama.ai/library/other/v1"), manifest);
    chmodSync(join(models, "blobs"), 0o555);
    const second = await startHearth({ env: { OLLAMA_MODELS: models } });
    try {
      const reply = await second.post("/api/generate", {
        model: "other:v1",
        prompt: "Hi",
        stream: false,
        options: { num_predict: 4 },
      });
      expect(await reply.json()).toMatchObject({ model: "other:v1", done: true });
    } finally {
      await second.stop();
      chmodSync(join(models, "blobs"), 0o755);
    }
  });
});
