import { beforeEach, describe, expect, test } from "bun:test";
import { enqueueEvent } from "../../src/agent/events.ts";
import {
  append,
  endSession,
  findSession,
  historyOf,
  listEntries,
  pruneSessions,
  setRoute,
  type EntryBody,
} from "../../src/agent/sessions.ts";
import { agentMigrations } from "../../src/agent/tables.ts";
import { openDatabase, type Database } from "../../src/base/database.ts";
import { external } from "../../src/base/passage.ts";
import { HOOK, MAIN } from "./parts.ts";

let db: Database;
beforeEach(() => void (db = openDatabase(":memory:", agentMigrations)));

const said = (content: string, role = "user"): EntryBody => ({ kind: "message", message: { role, content } });
const put = (runId: string, entries: readonly EntryBody[], more: { key?: string; now?: number } = {}) =>
  append(db, { sessionKey: more.key ?? HOOK, runId, isEphemeral: false, entries, now: more.now ?? 1 });

describe("a transcript", () => {
  test("keeps runs in the order in which they were stored, with ids, times and runs", () => {
    put("r1", [said("a"), said("b", "assistant")], { now: 5 });
    put("r2", [said("c")], { now: 3 }); // a clock that was set back
    const entries = listEntries(db, { sessionKey: HOOK, limit: 10 });
    expect(entries.map(({ runId, createdAt, body }) => [runId, createdAt, body])).toEqual([
      ["r1", 5, said("a")],
      ["r1", 5, said("b", "assistant")],
      ["r2", 3, said("c")],
    ]);
    expect(new Set(entries.map(({ id }) => id)).size).toBe(3);
    expect(listEntries(db, { sessionKey: HOOK, limit: 1, before: entries[2]!.seq }).map(({ seq }) => seq)).toEqual([
      entries[1]!.seq,
    ]);
  });

  test("holds a run once, and nothing after its end", () => {
    put("r1", [said("a")]);
    expect(() => put("r1", [said("a")])).toThrow("run 'r1' is in the transcript of its session already");
    endSession(db, { sessionKey: HOOK, now: 7 });
    expect(() => put("r2", [said("b")])).toThrow(`session '${HOOK}' has ended`);
    expect(findSession(db, HOOK)?.endedAt).toBe(7);
    expect(historyOf(db, HOOK).messages.length).toBe(1);
  });

  test("goes on after its last compaction", () => {
    put("r1", [said("old"), said("older", "assistant")]);
    put("r2", [said("kept"), said("kept too", "assistant")]);
    const through = listEntries(db, { sessionKey: HOOK, limit: 9 })[1]!.seq;
    put("r3", [{ kind: "compaction", through, droppedCount: 2, summary: "they met" }, said("new")]);
    const { compaction, messages } = historyOf(db, HOOK);
    expect(compaction).toMatchObject({ droppedCount: 2, summary: "they met" });
    expect(messages.map(({ message }) => message.content)).toEqual(["kept", "kept too", "new"]);
    expect(listEntries(db, { sessionKey: HOOK, limit: 9 }).length).toBe(6); // nothing was taken away
  });
});

describe("sessions", () => {
  test("remember their route", () => {
    put("r1", [said("a")], { key: "agent:main:hook:a", now: 1 });
    put("r2", [said("b")], { key: "agent:main:hook:b", now: 2 });
    setRoute(db, { sessionKey: MAIN, route: { channel: "telegram", to: "42" }, now: 3 });
    expect(findSession(db, MAIN)?.route).toEqual({ channel: "telegram", to: "42" });
    setRoute(db, { sessionKey: MAIN, route: { channel: "slack", to: "C1", thread: "9" }, now: 4 });
    expect(findSession(db, MAIN)?.route).toEqual({ channel: "slack", to: "C1", thread: "9" });
    expect(findSession(db, "agent:main:hook:a")?.route).toBeUndefined();
  });

  test("that nobody used are forgotten with their transcripts, but not the main one, nor where events wait", () => {
    for (const key of ["old", "waiting", "new"])
      put(key, [said("a"), said("b")], { key, now: key === "new" ? 100 : 1 });
    put("m", [said("a")], { key: MAIN });
    enqueueEvent(
      db,
      { sessionKey: "waiting", text: external("e"), isWrapped: true, source: "s", now: 1 },
      { eventsMax: 1 },
    );
    expect(pruneSessions(db, { idleSince: 50, keep: [MAIN], limit: 10 })).toBe(1);
    const there = [MAIN, "old", "waiting", "new"].filter((key) => findSession(db, key));
    expect(there).toEqual([MAIN, "waiting", "new"]);
    expect(listEntries(db, { sessionKey: "old", limit: 9 })).toEqual([]);
  });
});
