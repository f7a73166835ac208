import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { enqueueEvent } from "../../../src/gateway/agent/events.ts";
import {
  append,
  endSession,
  findSession,
  historyOf,
  listEntries,
  longSessions,
  pruneEntries,
  pruneSessions,
  READ_MAX,
  setRoute,
  type EntryBody,
} from "../../../src/gateway/agent/sessions.ts";
import { agentMigrations } from "../../../src/gateway/agent/tables.ts";
import { external } from "../../../src/gateway/agent/boundary/tainted-text.ts";
import type { Store } from "../../../src/gateway/database/store.ts";
import { openStore } from "../../stores.ts";
import { HOOK, MAIN } from "./parts.ts";

let store: Store;
beforeEach(() => void (store = openStore(agentMigrations)));
afterEach(() => store.close());

const said = (content: string, role = "user"): EntryBody => ({ kind: "message", message: { role, content } });
const put = (runId: string, entries: readonly EntryBody[], more: { key?: string; now?: number } = {}) =>
  store.write(() => append({ sessionKey: more.key ?? HOOK, runId, isEphemeral: false, entries, now: more.now ?? 1 }));

describe("a transcript", () => {
  test("keeps runs in the order in which they were stored, with ids, times and run ids", async () => {
    await put("r1", [said("a"), said("b", "assistant")], { now: 5 });
    await put("r2", [said("c")], { now: 3 }); // a clock that was set back
    const entries = await store.read(() => listEntries({ sessionKey: HOOK, limit: 10 }));
    expect(entries.map(({ runId, createdAt, body }) => [runId, createdAt, body])).toEqual([
      ["r1", 5, said("a")],
      ["r1", 5, said("b", "assistant")],
      ["r2", 3, said("c")],
    ]);
    expect(new Set(entries.map(({ id }) => id)).size).toBe(3);
    expect(await store.read(() => listEntries({ sessionKey: HOOK, limit: 1 }))).toEqual(entries.slice(2));
  });

  test("refuses a run that it has, and every run after its end", async () => {
    await put("r1", [said("a")]);
    await expect(put("r1", [said("a")])).rejects.toThrow("run 'r1' is in the transcript of its session already");
    await store.write(() => endSession({ sessionKey: HOOK, now: 7 }));
    await expect(put("r2", [said("b")])).rejects.toThrow(`session '${HOOK}' has ended`);
    expect((await store.read(() => findSession(HOOK)))?.endedAt).toBe(7);
    expect((await store.read(() => historyOf(HOOK))).messages.length).toBe(1);
  });

  test("is read from its last compaction", async () => {
    await put("r1", [said("old"), said("older", "assistant")]);
    await put("r2", [said("kept"), said("kept too", "assistant")]);
    const through = (await store.read(() => listEntries({ sessionKey: HOOK, limit: 9 })))[1]!.seq;
    await put("r3", [{ kind: "compaction", through, droppedCount: 2, summary: "they met" }, said("new")]);
    const { compaction, messages } = await store.read(() => historyOf(HOOK));
    expect(compaction).toMatchObject({ droppedCount: 2, summary: "they met" });
    expect(messages.map(({ message }) => message.content)).toEqual(["kept", "kept too", "new"]);
    const all = await store.read(() => listEntries({ sessionKey: HOOK, limit: 9 }));
    expect(all.length).toBe(6); // nothing was taken away
  });

  test("loses old entries that its last compaction stands for, except those that can be read", async () => {
    const many = (runId: string, count: number): Promise<void> =>
      put(
        runId,
        Array.from({ length: count }, (_, i) => said(`${runId} ${i}`)),
        { now: runId === "new" ? 9 : 1 },
      );
    const prune = () => store.write(() => pruneEntries({ sessionKey: HOOK, before: 5, limit: 4 }));
    const all = () => store.read(() => listEntries({ sessionKey: HOOK, limit: 9999 }));
    await many("old", 10);
    await put("other", [said("a")], { key: MAIN });
    expect(await store.read(longSessions)).toEqual([]);
    await many("new", READ_MAX);
    expect(await store.read(longSessions)).toEqual([HOOK]);
    expect(await prune()).toBe(0); // no compaction: a turn reads all of it
    const through = (await all())[7]!.seq;
    await put("c", [{ kind: "compaction", through, droppedCount: 8 }], { now: 9 });
    const history = await store.read(() => historyOf(HOOK));
    expect([await prune(), await prune(), await prune()]).toEqual([4, 4, 0]);
    expect((await all())[0]!.body).toEqual(said("old 8"));
    expect(await store.read(() => historyOf(HOOK))).toEqual(history);
    expect(await store.write(() => pruneEntries({ sessionKey: MAIN, before: 5, limit: 4 }))).toBe(0);
  });
});

describe("sessions", () => {
  test("keep their last route", async () => {
    await put("r1", [said("a")], { key: "agent:main:hook:a", now: 1 });
    await put("r2", [said("b")], { key: "agent:main:hook:b", now: 2 });
    await store.write(() => setRoute({ sessionKey: MAIN, route: { channel: "telegram", to: "42" }, now: 3 }));
    expect((await store.read(() => findSession(MAIN)))?.route).toEqual({ channel: "telegram", to: "42" });
    await store.write(() => setRoute({ sessionKey: MAIN, route: { channel: "slack", to: "C1", thread: "9" }, now: 4 }));
    expect((await store.read(() => findSession(MAIN)))?.route).toEqual({ channel: "slack", to: "C1", thread: "9" });
    expect((await store.read(() => findSession("agent:main:hook:a")))?.route).toBeUndefined();
  });

  test("are deleted with their transcripts when idle, except the main one and those with waiting events", async () => {
    for (const key of ["old", "waiting", "new"])
      await put(key, [said("a"), said("b")], { key, now: key === "new" ? 100 : 1 });
    await put("m", [said("a")], { key: MAIN });
    const event = { sessionKey: "waiting", text: external("e"), isWrapped: true, source: "s", now: 1 };
    await store.write(() => enqueueEvent(event, { eventsMax: 1 }));
    expect(await store.write(() => pruneSessions({ idleSince: 50, keep: [MAIN], limit: 10 }))).toBe(1);
    const keys = [MAIN, "old", "waiting", "new"];
    const found = await Promise.all(keys.map((key) => store.read(() => findSession(key))));
    expect(found.flatMap((session) => session?.key ?? [])).toEqual([MAIN, "waiting", "new"]);
    expect(await store.read(() => listEntries({ sessionKey: "old", limit: 9 }))).toEqual([]);
  });
});
