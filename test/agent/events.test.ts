import { beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  consumeEvents,
  countEvents,
  enqueueEvent,
  waitingEvents,
  wantsHeartbeat,
  type NewEvent,
} from "../../src/agent/events.ts";
import { agentMigrations } from "../../src/agent/tables.ts";
import { openDatabase, type Database } from "../../src/base/database.ts";
import { AppError } from "../../src/base/errors.ts";
import { external, operator } from "../../src/base/passage.ts";
import { HOOK, MAIN } from "./parts.ts";

let db: Database;
beforeEach(() => void (db = openDatabase(":memory:", agentMigrations)));

const put = (text: string, more: Partial<NewEvent> = {}, max = 100) =>
  enqueueEvent(
    db,
    { sessionKey: MAIN, text: external(text), isWrapped: true, source: "test", now: 1, ...more },
    { eventsMax: max },
  );
const waiting = (sessionKey = MAIN) => waitingEvents(db, { sessionKey, limit: 1000 });
const texts = () => waiting().map(({ text, count }) => `${text.map((part) => part.text).join("")} ×${count}`);

/** Whether there was room. */
function tryPut(text: string, more: Partial<NewEvent>): boolean {
  try {
    put(text, more, 3);
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === "busy") return false;
    throw error;
  }
}

describe("events", () => {
  test("wait in order, by session, as they came", () => {
    put("a", { now: 5 });
    put("b", { wantsHeartbeat: true, isDelivered: true, isWrapped: false, source: "GitHub" });
    put("c", { sessionKey: HOOK });
    expect(waiting()).toEqual([
      expect.objectContaining({ text: external("a"), isWrapped: true, count: 1, createdAt: 5, lastAt: 5 }),
      expect.objectContaining({ source: "GitHub", isWrapped: false, wantsHeartbeat: true, isDelivered: true }),
    ]);
    expect(waiting(HOOK).length).toBe(1);
    expect([wantsHeartbeat(db, MAIN), wantsHeartbeat(db, HOOK)]).toEqual([true, false]);
  });

  test("without text are none", () => {
    expect([put(" \n"), waiting().length]).toEqual(["ignored", 0]);
  });

  test("that say the same as the newest join it; others do not", () => {
    expect([put("a"), put("a", { now: 9, wantsHeartbeat: true }), put("b"), put("a")]).toEqual([
      "queued",
      "merged",
      "queued",
      "queued",
    ]);
    expect(texts()).toEqual(["a ×2", "b ×1", "a ×1"]);
    expect(waiting()[0]).toMatchObject({ createdAt: 1, lastAt: 9, wantsHeartbeat: true });
    put("a", { source: "elsewhere" });
    put("a", { source: "elsewhere", isWrapped: false });
    put("a", { source: "elsewhere", isWrapped: false, text: operator("a") });
    expect(waiting().length).toBe(6);
  });

  test("of one key are one, and say what the last of them said", () => {
    put("build 1 runs", { dedupeKey: "build" });
    put("other");
    expect(put("build 1 failed", { dedupeKey: "build" })).toBe("merged");
    put("build 1 failed");
    expect(texts()).toEqual(["build 1 failed ×2", "other ×1", "build 1 failed ×1"]);
    put("elsewhere", { dedupeKey: "build", sessionKey: HOOK });
    expect(waiting(HOOK).length).toBe(1);
  });

  test("that joined one since a turn saw it wait for the next turn", () => {
    put("a");
    put("a");
    const seen = waiting();
    put("a");
    put("b");
    consumeEvents(db, seen);
    expect(texts()).toEqual(["a ×1", "b ×1"]);
    consumeEvents(db, seen); // twice does no harm to others
    expect(texts()).toEqual(["b ×1"]);
  });
});

describe("too many events", () => {
  test("are refused with their number, those that join one are not", () => {
    put("a", {}, 2);
    put("b", {}, 2);
    expect(() => put("c", {}, 2)).toThrow(`2 events wait for session '${MAIN}'`);
    expect(put("b", {}, 2)).toBe("merged");
    expect(put("c", { sessionKey: HOOK }, 2)).toBe("queued");
    expect(texts()).toEqual(["a ×1", "b ×2"]);
  });

  test("and none that was taken is ever lost: whatever comes and is consumed, the counts add up", () => {
    const step = fc.oneof(
      fc.record({
        text: fc.constantFrom("a", "b", "c"),
        key: fc.option(fc.constantFrom("k", "l"), { nil: undefined }),
      }),
      fc.constant("consume" as const),
      fc.constant("look" as const),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        db.run("DELETE FROM session_events");
        let [given, taken] = [0, 0];
        let seen = waiting();
        for (const each of steps) {
          if (each === "look") seen = waiting();
          else if (each === "consume") {
            taken += seen.reduce((sum, { count }) => sum + count, 0);
            consumeEvents(db, seen);
            seen = [];
          } else {
            const hasRoom = tryPut(each.text, each.key === undefined ? {} : { dedupeKey: each.key });
            if (hasRoom) given++;
          }
        }
        expect(waiting().reduce((sum, { count }) => sum + count, 0)).toBe(given - taken);
        expect(countEvents(db, MAIN)).toBe(waiting().length);
      }),
      { numRuns: 300 },
    );
  });
});

test("events that waited before they were counted are counted", () => {
  const folder = mkdtempSync(join(tmpdir(), "hearth-events-"));
  const path = join(folder, "gateway.db");
  const old = openDatabase(path, agentMigrations.slice(0, 1));
  old.run(
    "INSERT INTO session_events (session_key, text, is_wrapped, source, wants_heartbeat, is_delivered, count, " +
      "created_at, last_at) VALUES (?, '[]', 0, 's', 0, 0, 1, 1, 1), (?, '[]', 0, 's', 0, 0, 1, 1, 1)",
    [MAIN, MAIN],
  );
  old.close();
  const migrated = openDatabase(path, agentMigrations);
  expect(countEvents(migrated, MAIN)).toBe(2);
  migrated.close();
  rmSync(folder, { recursive: true });
});
