/** Ctrl+C in a terminal, which reaches the server and every process that it started. */
import { expect, test } from "bun:test";
import { eventually, isAlive, startHearth } from "./hearth.ts";

const ASKED = { model: "hearth", prompt: "Hi", stream: false, options: { num_predict: 20, seed: 3 } };

test("Ctrl+C lets a running answer finish, and ends every runner", async () => {
  const own = await startHearth({ env: { HEARTH_SHUTDOWN_GRACE: "5m" } });
  try {
    await (await own.post("/api/generate", ASKED)).text();
    const runners = await own.runnerPids();
    expect(runners).not.toEqual([]);
    for (const pid of runners) process.kill(pid, "SIGSTOP"); // the answer comes after the signal
    const answer = own.post("/api/generate", ASKED);
    expect(await eventually(async () => (await own.activity()).running === 1)).toBe(true);
    for (const pid of [...runners, own.pid]) process.kill(pid, "SIGINT");
    const isReady = async (): Promise<boolean> =>
      (await fetch(`${own.url}/readyz`).catch(() => undefined))?.ok ?? false;
    expect(await eventually(async () => !(await isReady()))).toBe(true);
    for (const pid of runners) process.kill(pid, "SIGCONT");
    expect(await (await answer).json()).toMatchObject({ done: true, response: expect.stringMatching(/./) });
    await own.process.exited;
    expect(own.process.exitCode).toBe(0);
    for (const pid of runners) expect(await isAlive(pid)).toBe(false);
  } finally {
    await own.stop();
  }
}, 120_000);
