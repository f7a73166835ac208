/** Processes that are stopped, killed or flooded with requests: every request ends, and nothing remains. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { eventually, isAlive, ndjson, startHearth, type Hearth } from "../e2e/hearth.ts";

setDefaultTimeout(180_000);

const HI = { model: "hearth", prompt: "Hi", stream: false, options: { num_predict: 3, seed: 1 } };
const STORY = { model: "hearth", prompt: "Tell me a story", options: { num_predict: -1, temperature: 2, seed: 3 } };

let hearth: Hearth;
afterEach(() => hearth.stop());

async function startLoaded(env: Record<string, string> = {}): Promise<number> {
  hearth = await startHearth({ env });
  await (await hearth.post("/api/generate", HI)).text();
  const [pid] = await hearth.runnerPids();
  return pid!; // the request above loaded a model
}

const gone = (pid: number): Promise<boolean> => eventually(async () => !(await isAlive(pid)));

test("a runner that hangs while loading is ended by the load timeout, and the next request gets a new runner", async () => {
  hearth = await startHearth();
  const startedMs = performance.now();
  await (await hearth.post("/api/generate", HI)).text();
  const limitMs = 3000 + 5 * (performance.now() - startedMs); // far more than a load takes here
  await hearth.stop();
  // the runner that waits for the first model is stopped before it gets one
  const env = { HEARTH_LOAD_TIMEOUT: `${Math.ceil(limitMs)}ms`, HEARTH_SPARE_RUNNER: "true" };
  hearth = await startHearth({ env });
  expect(await eventually(async () => (await hearth.runnerPids()).length > 0)).toBe(true);
  const [pid] = await hearth.runnerPids();
  process.kill(pid!, "SIGSTOP");
  const response = await hearth.post("/api/generate", HI);
  expect(response.status).toBe(500);
  expect(await response.text()).toContain("timed out waiting for the model runner to load");
  expect(await gone(pid!)).toBe(true);
  expect((await hearth.post("/api/generate", HI)).status).toBe(200);
});

test("a hanging runner delays only its own requests, which can be aborted, and unloading ends it", async () => {
  const pid = await startLoaded();
  process.kill(pid, "SIGSTOP");
  const abort = new AbortController();
  const waiting = hearth.post("/api/generate", STORY, abort.signal).catch((error: Error) => error.name);
  expect(await eventually(async () => (await hearth.activity()).running === 1)).toBe(true);
  expect((await fetch(`${hearth.url}/api/version`)).status).toBe(200);
  abort.abort();
  expect(await waiting).toBe("AbortError");
  await hearth.post("/api/generate", { model: "hearth", keep_alive: 0 });
  expect(await gone(pid)).toBe(true);
  expect((await hearth.post("/api/generate", HI)).status).toBe(200);
});

test("SIGTERM ends the server and its hanging runner", async () => {
  const pid = await startLoaded();
  process.kill(pid, "SIGSTOP");
  hearth.process.kill("SIGTERM");
  expect(await hearth.process.exited).toBe(0);
  expect(await gone(pid)).toBe(true);
});

test("the next request after an idle runner was killed is answered by a new runner", async () => {
  const pid = await startLoaded();
  process.kill(pid, "SIGKILL");
  const [next, other] = await Promise.all([hearth.post("/api/generate", HI), hearth.post("/api/generate", HI)]);
  expect([next.status, other.status]).toEqual([200, 200]);
  expect(hearth.log().join("\n")).not.toContain('"bug"');
});

test("a server that is killed while a model loads leaves no runner behind", async () => {
  hearth = await startHearth();
  const waiting = hearth.post("/api/generate", HI).catch(() => undefined);
  expect(await eventually(async () => (await hearth.runnerPids()).length > 0)).toBe(true);
  const [pid] = await hearth.runnerPids();
  hearth.process.kill("SIGKILL");
  await waiting;
  expect(await gone(pid!)).toBe(true);
});

test("thirty requests of every kind, four at a time, all end, and no runner stays busy", async () => {
  await startLoaded();
  const endings: string[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < 30) endings.push(await ending(next++));
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
  expect(endings.filter((end) => !/^(stop|length|load|unload|aborted|error)$/.test(end))).toEqual([]);
  const four = await Promise.all([1, 2, 3, 4].map(() => hearth.post("/api/generate", HI)));
  expect(four.map((response) => response.status)).toEqual([200, 200, 200, 200]);
  expect(await hearth.runnerPids()).toHaveLength(1);
  expect(hearth.log().join("\n")).not.toContain('"bug"');
});

/** The end of the request with that number, which determines its content. */
async function ending(n: number): Promise<string> {
  const abort = new AbortController();
  if (n % 3 === 1) setTimeout(() => abort.abort(), (n * 37) % 200);
  const options = {
    num_predict: (n * 13) % 50,
    seed: n,
    ...(n % 12 === 3 ? { num_ctx: 64 << (n % 2) } : {}),
    ...(n % 11 === 5 ? { top_k: "x" } : {}),
  };
  const more = { ...(n % 13 === 7 ? { keep_alive: 0 } : {}), ...(n % 5 === 2 ? { format: "json" } : {}) };
  const body = { model: "hearth", prompt: "about the fox ".repeat(n % 30), options, ...more };
  try {
    let last: Record<string, any> = {};
    for await (const line of ndjson(await hearth.post("/api/generate", body, abort.signal))) last = line;
    return last["done"] ? last["done_reason"] : last["error"] ? "error" : "no end";
  } catch (error) {
    return abort.signal.aborted ? "aborted" : String(error);
  }
}
