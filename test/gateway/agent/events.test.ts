import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  consumeEvents,
  countEvents,
  enqueueEvent,
  hastenEvents,
  waitingEvents,
  wantsHeartbeat,
  type NewEvent,
} from "../../../src/gateway/agent/events.ts";
import { agentMigrations } from "../../../src/gateway/agent/tables.ts";
import { openDatabase } from "../../../src/gateway/database/database.ts";
import { AppError } from "../../../src/base/errors.ts";
import { external, operator } from "../../../src/gateway/agent/boundary/tainted-text.ts";
import { execute, type Store } from "../../../src/gateway/database/store.ts";
import { openStore, postgresUrl } from "../../stores.ts";
import { HOOK, MAIN } from "./parts.ts";

let store: Store;
beforeEach(() => void (store = openStore(agentMigrations)));
afterEach(() => store.close());

const put = (text: string, more: Partial<NewEvent> = {}, max = 100) =>
  store.write(() =>
    enqueueEvent(
      { sessionKey: MAIN, text: external(text), isWrapped: true, source: "test", now: 1, ...more },
      { eventsMax: max },
    ),
  );
const waiting = (sessionKey = MAIN) => store.read(() => waitingEvents({ sessionKey, limit: 1000 }));
const texts = async () =>
  (await waiting()).map(({ text, count }) => `${text.map((part) => part.text).join("")} ×${count}`);

/** True if there was room. */
async function tryPut(text: string, more: Partial<NewEvent>): Promise<boolean> {
  try {
    await put(text, more, 3);
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === "busy") return false;
    throw error;
  }
}

describe("events", () => {
  test("wait in order, separately for each session", async () => {
    await put("a", { now: 5 });
    await put("b", { wantsHeartbeat: true, isDelivered: true, isWrapped: false, source: "GitHub" });
    await put("c", { sessionKey: HOOK });
    expect(await waiting()).toEqual([
      expect.objectContaining({ text: external("a"), isWrapped: true, count: 1, createdAt: 5, lastAt: 5 }),
      expect.objectContaining({ source: "GitHub", isWrapped: false, wantsHeartbeat: true, isDelivered: true }),
    ]);
    expect((await waiting(HOOK)).length).toBe(1);
    expect([await store.read(() => wantsHeartbeat(MAIN)), await store.read(() => wantsHeartbeat(HOOK))]).toEqual([
      true,
      false,
    ]);
  });

  test("without text are ignored", async () => {
    expect([await put(" \n"), (await waiting()).length]).toEqual(["ignored", 0]);
  });

  test("merge with the newest event if text, source and boundary are equal", async () => {
    const puts = [put("a"), put("a", { now: 9, wantsHeartbeat: true }), put("b"), put("a")];
    expect(await Promise.all(puts)).toEqual(["queued", "merged", "queued", "queued"]);
    expect(await texts()).toEqual(["a ×2", "b ×1", "a ×1"]);
    expect((await waiting())[0]).toMatchObject({ createdAt: 1, lastAt: 9, wantsHeartbeat: true });
    await put("a", { source: "elsewhere" });
    await put("a", { source: "elsewhere", isWrapped: false });
    await put("a", { source: "elsewhere", isWrapped: false, text: operator("a") });
    expect((await waiting()).length).toBe(6);
  });

  test("with the same key merge, and show the last text", async () => {
    await put("build 1 runs", { dedupeKey: "build" });
    await put("other");
    expect(await put("build 1 failed", { dedupeKey: "build" })).toBe("merged");
    await put("build 1 failed");
    expect(await texts()).toEqual(["build 1 failed ×2", "other ×1", "build 1 failed ×1"]);
    await put("elsewhere", { dedupeKey: "build", sessionKey: HOOK });
    expect((await waiting(HOOK)).length).toBe(1);
  });

  test("merged into an event that a turn already saw wait for the next turn", async () => {
    await put("a");
    await put("a");
    const seen = await waiting();
    await put("a");
    await put("b");
    await store.write(() => consumeEvents(seen));
    expect(await texts()).toEqual(["a ×1", "b ×1"]);
    await store.write(() => consumeEvents(seen)); // consuming twice does not affect other events
    expect(await texts()).toEqual(["b ×1"]);
  });
});

test("hastenEvents makes a heartbeat due for the oldest event, unless one is due", async () => {
  const hasten = () => store.write(() => hastenEvents(MAIN));
  await put("elsewhere", { sessionKey: HOOK });
  expect(await hasten()).toBe(false);
  await put("a");
  await put("b");
  expect([await hasten(), await hasten()]).toEqual([true, false]);
  expect((await waiting()).map((event) => event.wantsHeartbeat)).toEqual([true, false]);
  expect((await waiting(HOOK))[0]?.wantsHeartbeat).toBe(false);
});

describe("at the limit of waiting events", () => {
  test("a new event is refused with the number, and an equal one still merges", async () => {
    await put("a", {}, 2);
    await put("b", {}, 2);
    await expect(put("c", {}, 2)).rejects.toThrow(`2 events wait for session '${MAIN}'`);
    expect(await put("b", {}, 2)).toBe("merged");
    expect(await put("c", { sessionKey: HOOK }, 2)).toBe("queued");
    expect(await texts()).toEqual(["a ×1", "b ×2"]);
  });

  test("no accepted event is lost: after any puts and consumptions, the counts add up", async () => {
    const step = fc.oneof(
      fc.record({
        text: fc.constantFrom("a", "b", "c"),
        key: fc.option(fc.constantFrom("k", "l"), { nil: undefined }),
      }),
      fc.constant("consume" as const),
      fc.constant("look" as const),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        await store.write(() => execute("DELETE FROM session_events"));
        let [given, taken] = [0, 0];
        let seen = await waiting();
        for (const each of steps) {
          if (each === "look") seen = await waiting();
          else if (each === "consume") {
            taken += seen.reduce((sum, { count }) => sum + count, 0);
            await store.write(() => consumeEvents(seen));
            seen = [];
          } else {
            const hasRoom = await tryPut(each.text, each.key === undefined ? {} : { dedupeKey: each.key });
            if (hasRoom) given++;
          }
        }
        expect((await waiting()).reduce((sum, { count }) => sum + count, 0)).toBe(given - taken);
        expect(await store.read(() => countEvents(MAIN))).toBe((await waiting()).length);
      }),
      { numRuns: postgresUrl === undefined ? 300 : 20 },
    );
  });
});

test.skipIf(postgresUrl !== undefined)("a migration counts the events that already wait", async () => {
  const folder = mkdtempSync(join(tmpdir(), "hearth-events-"));
  const path = join(folder, "gateway.db");
  const old = openDatabase(path, agentMigrations.slice(0, 1));
  old.run(
    "INSERT INTO session_events (session_key, text, is_wrapped, source, wants_heartbeat, is_delivered, count, " +
      "created_at, last_at) VALUES (?, '[]', 0, 's', 0, 0, 1, 1, 1), (?, '[]', 0, 's', 0, 0, 1, 1, 1)",
    [MAIN, MAIN],
  );
  old.close();
  const migrated = openStore(agentMigrations, path);
  expect(await migrated.read(() => countEvents(MAIN))).toBe(2);
  await migrated.close();
  rmSync(folder, { recursive: true });
});
