import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { historyOf } from "../../../src/gateway/agent/sessions.ts";
import { agentMigrations } from "../../../src/gateway/agent/tables.ts";
import { queryAll, queryOne } from "../../../src/gateway/database/store.ts";
import { bundled } from "../../bundled.ts";
import { testRng } from "../../seed.ts";
import { openStore } from "../../stores.ts";
import { MAIN } from "./parts.ts";

const PROGRAM = await bundled(join(import.meta.dir, "killable.ts"));
const KILLS = 30;

/** Reads until the program has said the word; it may say more later. */
async function says({ stdout }: Bun.Subprocess<"ignore", "pipe", "inherit">, word: string): Promise<void> {
  const reader = stdout.getReader();
  for (let said = ""; !said.includes(word);) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`it ended without '${word}'`);
    said += Buffer.from(value).toString();
  }
}

test("after kills at random moments, one stored turn has each event, and each turn's reply is stored once", async () => {
  const folder = mkdtempSync(join(tmpdir(), "hearth-kill-"));
  const path = join(folder, "gateway.db");
  const random = testRng("agent/kill");
  const start = (task: string) =>
    Bun.spawn([process.execPath, PROGRAM, path, task], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  try {
    for (let i = 0; i < KILLS; i++) {
      const child = start("work");
      await says(child, i % 2 === 0 ? "ready" : "answered");
      await Bun.sleep(random.float() * 500); // heartbeats begin after a quarter of a second
      child.kill("SIGKILL");
      await child.exited;
    }
    expect(await start("drain").exited).toBe(0);
    const store = openStore(agentMigrations, path);
    const { next } = (await store.read(() => queryOne<{ next: number }>("SELECT next FROM counter")))!;
    const messages = (await store.read(() => historyOf(MAIN))).messages.map(({ message }) => message);
    const shown = messages.flatMap(({ content }) => content.match(/event number \d+;/g) ?? []);
    const answers = messages.filter(({ role }) => role === "assistant").map(({ content }) => content);
    const sent = (await store.read(() => queryAll<{ text: string }>("SELECT text FROM sent"))).map(({ text }) => text);
    expect(next).toBeGreaterThanOrEqual(KILLS);
    expect(answers.length).toBeGreaterThanOrEqual(KILLS / 2);
    expect(shown.toSorted()).toEqual(Array.from({ length: next }, (_, i) => `event number ${i + 1};`).toSorted());
    expect(sent.toSorted()).toEqual(answers.toSorted());
    await store.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 300_000);
