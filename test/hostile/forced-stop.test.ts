/** `hearth stop --force`: a model ends at once, whatever it is doing. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { eventually, isAlive, runHearth, startHearth, type Hearth } from "../e2e/hearth.ts";

setDefaultTimeout(120_000);

const HI = { model: "hearth", prompt: "Hi", stream: false, options: { num_predict: 3, seed: 1 } };

let hearth: Hearth;
afterEach(() => hearth.stop());

test("a forced stop ends a runner at once: its requests fail, and the next request gets a new runner", async () => {
  hearth = await startHearth();
  await (await hearth.post("/api/generate", HI)).text();
  const [pid] = (await hearth.runnerPids()) as [number];
  process.kill(pid, "SIGSTOP"); // it ignores everything
  const waiting = hearth.post("/api/generate", HI);
  expect(await eventually(async () => (await hearth.activity()).running === 1)).toBe(true);
  expect((await hearth.post("/api/generate", { model: "hearth", keep_alive: 0 })).status).toBe(200);
  expect(await isAlive(pid)).toBe(true); // its request is still running
  const env = { HEARTH_HOST: hearth.url };
  expect(await runHearth(["stop", "--force", "hearth"], { home: hearth.home, env })).toMatchObject({
    code: 0,
    stderr: "",
  });
  const reply = await waiting;
  expect([reply.status, await reply.json()]).toEqual([500, { error: "model 'hearth:latest' was stopped by force" }]);
  expect(await eventually(async () => !(await isAlive(pid)))).toBe(true);
  expect((await hearth.post("/api/generate", HI)).status).toBe(200);
  const wrong = await hearth.post("/api/generate", { ...HI, force: true });
  expect([wrong.status, ((await wrong.json()) as any).error]).toEqual([
    400,
    'force: expected "keep_alive": 0 beside it, and no prompt',
  ]);
});

test("a forced stop ends the loading of a model", async () => {
  hearth = await startHearth({ env: { HEARTH_SPARE_RUNNER: "true" } });
  await (await hearth.post("/api/generate", HI)).text(); // the kernels are tested
  const [used] = await hearth.runnerPids();
  await hearth.post("/api/generate", { model: "hearth", keep_alive: 0 });
  // the runner that waits for the next model is stopped before it gets one
  const hasSpare = async (): Promise<boolean> => {
    const pids = await hearth.runnerPids();
    return pids.length === 1 && pids[0] !== used;
  };
  expect(await eventually(hasSpare)).toBe(true);
  const [pid] = await hearth.runnerPids();
  process.kill(pid!, "SIGSTOP");
  const waiting = hearth.post("/api/generate", HI);
  expect(await eventually(async () => (await hearth.activity()).running === 1)).toBe(true);
  await hearth.post("/api/generate", { model: "hearth", keep_alive: 0, force: true });
  const reply = await waiting;
  expect([reply.status, await reply.json()]).toEqual([500, { error: "model 'hearth:latest' was stopped by force" }]);
  expect(await eventually(async () => !(await isAlive(pid!)))).toBe(true);
});
