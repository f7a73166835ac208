/** Ctrl+C in a terminal, which reaches the server and every process that it started. */
import { expect, test } from "bun:test";
import { isAlive, ndjson, startHearth } from "./hearth.ts";
import { NEVER_ENDING } from "../clients/target.ts";

const ENDLESS = { model: "hearth", prompt: "A node:", format: NEVER_ENDING, options: { num_predict: 400, seed: 3 } };

test("Ctrl+C lets a running answer finish, and ends every runner", async () => {
  const own = await startHearth();
  try {
    const lines = ndjson(await own.post("/api/generate", ENDLESS));
    await lines.next();
    const runners = await own.runnerPids();
    expect(runners).not.toEqual([]);
    for (const pid of [...runners, own.pid]) process.kill(pid, "SIGINT");
    let last: unknown;
    for await (const line of lines) last = line;
    expect(last).toMatchObject({ done: true });
    await own.process.exited;
    expect(own.process.exitCode).toBe(0);
    for (const pid of runners) expect(await isAlive(pid)).toBe(false);
  } finally {
    await own.stop();
  }
});
