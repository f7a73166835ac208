/** A hung runner is noticed, ended and replaced, also in the middle of an answer. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { eventually, isAlive, ndjson, startHearth, type Hearth } from "../e2e/hearth.ts";

setDefaultTimeout(120_000);

const LIMIT_MS = 3000;
const WHY = `model 'hearth:latest': its runner hung and was ended: no progress in ${LIMIT_MS / 1000} s (HEARTH_STEP_TIMEOUT)`;
const HI = { model: "hearth", prompt: "Hi", stream: false, options: { num_predict: 3, seed: 1 } };
/** A schema that no finite text fits: the model cannot stop by itself. */
const ENDLESS_SCHEMA = {
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
const STORY = { model: "hearth", prompt: "Hi", format: ENDLESS_SCHEMA, options: { num_predict: -1, seed: 3 } };

let hearth: Hearth;
afterEach(() => hearth.stop());

async function startLoaded(
  env: Record<string, string> = { HEARTH_STEP_TIMEOUT: `${LIMIT_MS / 1000}s` },
): Promise<number> {
  hearth = await startHearth({ env });
  await (await hearth.post("/api/generate", HI)).text();
  const [pid] = await hearth.runnerPids();
  return pid!; // the request above loaded a model
}

/** A story that has begun, and the rest of it. */
async function beginStory(): Promise<AsyncGenerator<Record<string, any>>> {
  const lines = ndjson(await hearth.post("/api/generate", STORY));
  await lines.next();
  return lines;
}

async function lastOf(lines: AsyncGenerator<Record<string, any>>): Promise<Record<string, any>> {
  let last = {};
  for await (const line of lines) last = line;
  return last;
}

const logged = (msg: string): boolean => hearth.log().some((line) => line.includes(`"msg":"${msg}"`));

test("a runner suspended during answers is ended: the answers fail, and the next request gets a new runner", async () => {
  const pid = await startLoaded();
  const stream = await beginStory();
  const whole = hearth.post("/api/generate", { ...STORY, stream: false });
  expect(await eventually(async () => (await hearth.activity()).running === 2)).toBe(true);
  process.kill(pid, "SIGSTOP");
  expect(await lastOf(stream)).toEqual({ error: WHY });
  const reply = await whole;
  expect([reply.status, await reply.json()]).toEqual([500, { error: WHY }]);
  expect(await eventually(async () => !(await isAlive(pid)))).toBe(true);
  expect((await hearth.post("/api/generate", HI)).status).toBe(200);
  const health: any = await (await fetch(`${hearth.url}/health`)).json();
  expect(health).toMatchObject({ status: "ok", models: { hung: [{ model: "hearth:latest" }] } });
  expect(await (await fetch(`${hearth.url}/metrics`)).text()).toContain('hearth_model_events_total{event="hang"} 1');
  expect(logged("a runner hung and was ended")).toBe(true);
});

test("the next request after an idle runner was suspended is answered by a new runner", async () => {
  const pid = await startLoaded();
  await Bun.sleep(LIMIT_MS / 5); // by then it counts as idle
  process.kill(pid, "SIGSTOP");
  const [next, other] = await Promise.all([hearth.post("/api/generate", HI), hearth.post("/api/generate", HI)]);
  expect([next.status, other.status]).toEqual([200, 200]);
  expect(await eventually(async () => !(await isAlive(pid)))).toBe(true);
  expect(logged("a runner hung and was ended")).toBe(true);
});

test("a runner suspended for longer than the limit together with its server continues its answer", async () => {
  const pid = await startLoaded();
  const stream = await beginStory();
  process.kill(hearth.pid, "SIGSTOP"); // as on a machine that sleeps
  process.kill(pid, "SIGSTOP");
  await Bun.sleep(LIMIT_MS * 1.5);
  process.kill(pid, "SIGCONT"); // first: the server's time must not pass without it
  process.kill(hearth.pid, "SIGCONT");
  const { running } = await hearth.activity(); // the server is awake
  expect(running).toBe(1);
  expect((await stream.next()).value).toMatchObject({ done: false });
  expect(await hearth.runnerPids()).toEqual([pid]);
});

test("a runner suspended for less than the limit continues its answer", async () => {
  const pid = await startLoaded({ HEARTH_STEP_TIMEOUT: "60s" });
  const stream = await beginStory();
  process.kill(pid, "SIGSTOP");
  await Bun.sleep(LIMIT_MS);
  process.kill(pid, "SIGCONT");
  expect((await stream.next()).value).toMatchObject({ done: false });
  expect(await hearth.runnerPids()).toEqual([pid]);
});
