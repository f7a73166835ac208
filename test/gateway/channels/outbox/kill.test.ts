import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundled } from "../../../bundled.ts";
import { testRng } from "../../../seed.ts";
import { startPlatform } from "../platforms.ts";

const PROGRAM = await bundled(join(import.meta.dir, "child.ts"));
const KILLS = 40;
const TEXTS = 120; // each two messages, for each of five recipients

interface Row {
  readonly channel: string;
  readonly recipient: string;
  readonly text: string;
  readonly state: string;
  readonly seq: number;
}

const rng = testRng("outbox/kill");

/** Answers late, so that kills fall before, during and after a message is accepted. */
function slowly(platform: ReturnType<typeof startPlatform>, onTaken: () => void): void {
  platform.reply = async () => {
    await Bun.sleep(rng.float() * 6);
    onTaken();
    await Bun.sleep(rng.float() * 6);
    return undefined;
  };
}

test(`after ${KILLS} kills, no message arrived twice, and none is lost on a platform that drops repeats`, async () => {
  const folder = mkdtempSync(join(tmpdir(), "hearth-kill-"));
  const path = join(folder, "gateway.db");
  const telegram = startPlatform("telegram");
  const discord = startPlatform("discord");
  let next: (() => void) | undefined;
  const onTaken = (): void => next?.();
  slowly(telegram, onTaken);
  slowly(discord, onTaken);

  const spawn = () =>
    Bun.spawn([process.execPath, PROGRAM, path, telegram.url, discord.url, String(TEXTS)], {
      stdout: "pipe",
      stderr: "inherit",
    });
  let killed = 0;
  while (killed < KILLS) {
    const child = spawn();
    const taken = new Promise<"taken">((resolve) => (next = () => resolve("taken")));
    if ((await Promise.race([taken, child.exited])) !== "taken") break; // it had finished
    await Bun.sleep(rng.float() * 40);
    child.kill("SIGKILL");
    await child.exited;
    killed++;
  }
  expect(killed).toBeGreaterThanOrEqual(30);
  const last = spawn();
  expect(await new Response(last.stdout).text()).toBe("done\n");

  const db = new Database(path, { readonly: true });
  const rows = db.query<Row, []>("SELECT channel, recipient, text, state, seq FROM outbox ORDER BY seq").all();
  db.close();
  expect(rows.length).toBe(TEXTS * 2 * 5);
  expect(telegram.wrong.concat(discord.wrong)).toEqual([]);

  // this platform drops no repeats: every request is a message in the chat
  const arrived = telegram.texts();
  expect(arrived.length).toBe(new Set(arrived).size);
  for (const { text, state } of rows.filter((row) => row.channel === "telegram")) {
    if (state === "sent") expect(arrived).toContain(text);
    else expect(state).toBe("unknown"); // and reported: never silently lost
  }

  // this platform makes one message per nonce
  const made = new Map(discord.seen.map(({ body }) => [body["nonce"], String(body["content"])]));
  const expected = rows.filter((row) => row.channel === "discord");
  expect([...made.values()].toSorted()).toEqual(expected.map((row) => row.text).toSorted());
  expect(new Set(expected.map((row) => row.state))).toEqual(new Set(["sent"]));
  for (const recipient of ["channel:100001", "channel:100002"]) {
    const mine = expected.filter((row) => row.recipient === recipient).map((row) => row.text);
    expect([...made.values()].filter((text) => mine.includes(text))).toEqual(mine); // in order
  }
  telegram.stop();
  discord.stop();
  rmSync(folder, { recursive: true, force: true });
}, 300_000);
