import { Database } from "bun:sqlite";
import { afterEach, expect, test } from "bun:test";
import { AppError } from "../../../../src/base/errors.ts";
import type { Channel, SendRequest } from "../../../../src/gateway/channels/channel.ts";
import {
  pruneOutbox,
  outboxStats,
  textMessages,
  textOutcome,
} from "../../../../src/gateway/channels/outbox/messages.ts";
import type { Outbox, OutboxDeps, Settled } from "../../../../src/gateway/channels/outbox/outbox.ts";
import { eventually } from "../../../e2e/hearth.ts";
import { sectionFor, startPlatform } from "../platforms.ts";
import { channelsFrom, makeBox, scripted, type Box } from "../fixtures.ts";
import { execute, queryAll, type Transaction } from "../../../../src/gateway/database/store.ts";
import { answering, postgresUrl } from "../../../stores.ts";

let box: Box;
let running: Outbox[] = [];
afterEach(async () => {
  await Promise.all(running.map((outbox) => outbox.stop({ graceMs: 0 })));
  running = [];
  await box.remove();
});

async function start(channels: readonly Channel[], more: Partial<OutboxDeps> = {}): Promise<void> {
  box = makeBox(channels, more);
  await run(box.outbox);
}

async function run(outbox: Outbox): Promise<void> {
  running.push(outbox);
  await outbox.start();
}

/** Resolves with how the text ended. */
async function put(groupId: string, text: string, { to = "ann", outbox = box.outbox, channel = "scripted" } = {}) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const off = outbox.onSettled((id) => id === groupId && resolve());
  await box.store.write(() => outbox.add({ groupId, target: { channel, to }, text, now: Date.now() }));
  outbox.poke();
  await promise;
  off();
  return box.store.read(() => textOutcome(groupId));
}

const makeReader = (path: string) => new Database(path, { readonly: true });
const states = async (groupId: string) => (await box.store.read(() => textMessages(groupId))).map((row) => row.state);
const lines = (n: number) => Array.from({ length: n }, (_, i) => `${i}${".".repeat(40)}`).join("\n");

test("a text is sent in parts, in order, and each part's message id is stored", async () => {
  const sent: SendRequest[] = [];
  await start([scripted((request) => ({ kind: "sent", messageId: `m${sent.push(request)}` }))]);
  expect(await put("g", lines(3))).toEqual({ kind: "sent", messageIds: ["m1", "m2", "m3"] });
  expect(sent.map(({ text }) => text[0])).toEqual(["0", "1", "2"]);
  expect(new Set(sent.map(({ key }) => key)).size).toBe(3);
  expect((await box.store.read(() => textMessages("g"))).map((row) => row.message_id)).toEqual(["m1", "m2", "m3"]);
});

test.skipIf(postgresUrl !== undefined)("a message is stored as being sent before its request is sent", async () => {
  const seen: unknown[] = [];
  await start([
    scripted(() => {
      const other = makeReader(box.path);
      seen.push(other.query("SELECT state, attempts FROM outbox").get());
      other.close();
      return { kind: "sent" };
    }),
  ]);
  await put("g", "hello");
  expect(seen).toEqual([{ state: "sending", attempts: 1 }]);
});

test("a message whose state could not be stored is sent once the database can be written again", async () => {
  let sends = 0;
  await start([scripted(() => (sends++, { kind: "sent" }))]);
  const { store } = box;
  const write = store.write.bind(store);
  const failures: unknown[] = [];
  store.write = async <T>(work: () => Transaction<T>) => {
    let marked: string[] = []; // at the end of this transaction: another may have marked it since
    const result = await write(function* () {
      const done = yield* work();
      marked = (yield* textMessages("g")).map((row) => row.state);
      return done;
    });
    if (failures.length > 0 || marked[0] !== "sending") return result;
    failures.push(marked);
    throw new AppError("storage", "the database cannot be written: EIO");
  };
  expect(await put("g", "hello")).toMatchObject({ kind: "sent" });
  expect([failures, sends]).toEqual([[["sending"]], 1]);
});

test("a text added twice is sent once", async () => {
  let sends = 0;
  await start([scripted(() => (sends++, { kind: "sent" }))]);
  await put("g", "hello");
  const again = { groupId: "g", target: { channel: "scripted", to: "ann" }, text: "hello", now: Date.now() };
  await box.store.write(() => box.outbox.add(again));
  box.outbox.poke();
  await put("other", "later");
  expect(sends).toBe(2);
});

test("a text of a transaction that is rolled back is not sent", async () => {
  const sent: string[] = [];
  await start([scripted(({ text }) => (sent.push(text), { kind: "sent" }))]);
  const text = { groupId: "gone", target: { channel: "scripted", to: "ann" }, text: "gone", now: 0 };
  const failing = box.store.write(function* () {
    yield* box.outbox.add(text);
    throw new Error("no");
  });
  expect(failing).rejects.toThrow("no");
  await put("g", "kept");
  expect(sent).toEqual(["kept"]);
});

test("a retry waits as long as the platform asks, and later messages to the recipient wait behind it", async () => {
  const log: { text: string; at: number }[] = [];
  await start([
    scripted(({ text }) => {
      log.push({ text, at: Date.now() });
      return log.length === 1 ? { kind: "retry", reason: "busy", afterMs: 1500 } : { kind: "sent" };
    }),
  ]);
  await Promise.all([put("a", "first"), put("b", "second")]);
  expect(log.map(({ text }) => text)).toEqual(["first", "first", "second"]);
  expect(log[1]!.at - log[0]!.at).toBeGreaterThanOrEqual(1500);
});

test("a slow recipient does not delay another", async () => {
  const sent: string[] = [];
  const hang = Promise.withResolvers<{ kind: "sent" }>();
  await start([
    scripted(({ target, text }) => {
      if (target.to === "slow") return hang.promise;
      sent.push(text);
      return { kind: "sent" };
    }),
  ]);
  const slow = put("a", "slow one", { to: "slow" });
  await put("b", "quick one", { to: "quick" });
  expect(sent).toEqual(["quick one"]);
  hang.resolve({ kind: "sent" });
  await slow;
});

test("at most four recipients of a channel are sent to at once", async () => {
  let [now, most] = [0, 0];
  await start([
    scripted(async () => {
      most = Math.max(most, ++now);
      await eventually(() => most >= 4); // the first ones wait for each other
      await Bun.sleep(5); // time for a fifth one, if there were any
      now--;
      return { kind: "sent" };
    }),
  ]);
  await Promise.all(Array.from({ length: 20 }, (_, i) => put(`g${i}`, "hi", { to: `r${i}` })));
  expect(most).toBe(4);
});

test("messages to one recipient keep the platform's minimum distance", async () => {
  const at: number[] = [];
  await start([scripted(() => (at.push(Date.now()), { kind: "sent" }), { spacingMs: 200 })]);
  await put("g", lines(3));
  expect(at[1]! - at[0]!).toBeGreaterThanOrEqual(199);
  expect(at[2]! - at[1]!).toBeGreaterThanOrEqual(199);
});

test("a part that fails ends its text, and no other text", async () => {
  const sent: string[] = [];
  await start([
    scripted(({ text }) => {
      sent.push(text[0]!);
      return text.startsWith("1") ? { kind: "failed", reason: "no such chat" } : { kind: "sent", messageId: "m" };
    }),
  ]);
  expect(await put("g", lines(4))).toEqual({ kind: "failed", reason: "no such chat", messageIds: ["m"] });
  expect(await states("g")).toEqual(["sent", "failed", "failed", "failed"]);
  expect(sent).toEqual(["0", "1"]);
  expect(await put("h", "next")).toMatchObject({ kind: "sent" });
});

test("a part of unknown outcome is not repeated if the platform does not drop repeats, and later parts are sent", async () => {
  const sent: string[] = [];
  await start([
    scripted(({ text }) => {
      sent.push(text[0]!);
      return text.startsWith("1") ? { kind: "unknown", reason: "cut off" } : { kind: "sent" };
    }),
  ]);
  expect(await put("g", lines(3))).toMatchObject({ kind: "unknown", reason: "cut off" });
  expect(sent).toEqual(["0", "1", "2"]);
  expect(await states("g")).toEqual(["sent", "unknown", "sent"]);
});

test("a part of unknown outcome is repeated with its key while the platform drops repeats", async () => {
  const keys: string[] = [];
  const flaky = scripted(
    ({ key }) => (keys.push(key) === 1 ? { kind: "unknown", reason: "cut off" } : { kind: "sent" }),
    { dedupeMs: 60_000 },
  );
  await start([flaky]);
  expect(await put("g", "hello")).toMatchObject({ kind: "sent" });
  expect(keys.length).toBe(2);
  expect(keys[0]).toBe(keys[1]!);
});

test("a part of unknown outcome is not repeated once the platform no longer drops repeats", async () => {
  let now = 1_000_000;
  const sentAt: number[] = [];
  const flaky = scripted(() => (sentAt.push(now), { kind: "unknown", reason: "cut off" }), { dedupeMs: 2900 });
  await start([flaky], { now: () => now });
  const begun = now;
  await box.store.write(() =>
    box.outbox.add({ groupId: "g", target: { channel: "scripted", to: "ann" }, text: "hello", now }),
  );
  box.outbox.poke();
  const isPutOff = async () => (await box.store.read(() => textMessages("g")))[0]?.next_at === begun + 1000;
  expect(await eventually(isPutOff)).toBe(true);
  now += 1000;
  box.outbox.poke();
  expect(await eventually(async () => (await box.store.read(() => textOutcome("g"))) !== undefined)).toBe(true);
  expect(await box.store.read(() => textOutcome("g"))).toMatchObject({ kind: "unknown" });
  expect(sentAt).toEqual([begun, begun + 1000]); // 2 s later it would be too late
});

test("a message fails with the last reason after the maximum number of attempts", async () => {
  await start([scripted(() => ({ kind: "retry", reason: "busy" }))], { limits: { maxAttempts: 2, maxAgeMs: 60_000 } });
  expect(await put("g", "hello")).toMatchObject({ kind: "failed", reason: "given up after 2 attempts: busy" });
});

test("a message fails at once if the platform asks for a longer wait than its maximum age", async () => {
  await start([scripted(() => ({ kind: "retry", reason: "busy", afterMs: 7_200_000 }))], {
    limits: { maxAttempts: 9, maxAgeMs: 3_600_000 },
  });
  expect(await put("g", "hello")).toMatchObject({ kind: "failed", reason: "given up after 1 attempts: busy" });
});

test("an exception of a channel makes the outcome of its message unknown", async () => {
  await start([
    scripted(() => {
      throw new Error("plugin bug");
    }),
  ]);
  expect(await put("g", "hello")).toMatchObject({
    kind: "unknown",
    reason: "channel 'scripted' failed: plugin bug",
  });
});

test("a message to a channel that is not configured waits until it is", async () => {
  const channels = new Map<string, Channel>();
  await start([], { channels: () => channels });
  const done = put("g", "hello");
  while ((await box.store.read(() => textMessages("g")))[0]?.attempts !== 1) await Bun.sleep(5);
  channels.set(
    "scripted",
    scripted(() => ({ kind: "sent" })),
  );
  expect(await done).toMatchObject({ kind: "sent" });
});

test("a blank text fails at once", async () => {
  await start([scripted(() => ({ kind: "sent" }))]);
  const blank = { groupId: "g", target: { channel: "scripted", to: "ann" }, text: " \n ", now: 0 };
  await box.store.write(() => box.outbox.add(blank));
  expect(await box.store.read(() => textOutcome("g"))).toMatchObject({ kind: "failed", reason: "the text is blank" });
  expect(await box.store.read(() => textOutcome("never put in"))).toBeUndefined();
});

test("a text that is too long is cut, with a note of how much is missing", async () => {
  const texts: string[] = [];
  await start([scripted(({ text }) => (texts.push(text), { kind: "sent" }), { chunkLimit: 40_000 })]);
  await put("g", "x".repeat(300_000));
  expect(texts.length).toBeLessThan(10);
  expect(texts.at(-1)).toEndWith("[100000 more characters are left out]");
});

test("onSettle runs once, inside the transaction that ends a text", async () => {
  const received: Settled[] = [];
  const onSettle: NonNullable<OutboxDeps["onSettle"]> = function* (settled) {
    received.push(settled);
    yield* execute("CREATE TABLE IF NOT EXISTS notes (id TEXT PRIMARY KEY)");
    yield* execute("INSERT INTO notes VALUES ($1)", settled.groupId);
  };
  await start([scripted(() => ({ kind: "sent" }))], { onSettle });
  await put("g", lines(3));
  expect(received).toEqual([{ groupId: "g", kind: "sent", messageIds: [] }]);
  expect(await box.store.read(() => queryAll("SELECT id FROM notes"))).toEqual([{ id: "g" }]);
});

test("stop waits for messages that are being sent, and sends no further ones", async () => {
  const sent: string[] = [];
  const hang = Promise.withResolvers<{ kind: "sent" }>();
  await start([scripted(({ text }) => (sent.push(text[0]!), hang.promise))]);
  void put("g", lines(2));
  while (sent.length === 0) await Bun.sleep(5);
  const stopped = box.outbox.stop();
  hang.resolve({ kind: "sent" });
  await stopped;
  expect(await states("g")).toEqual(["sent", "queued"]);
  await run(box.again());
  while ((await box.store.read(() => textOutcome("g"))) === undefined) await Bun.sleep(5);
  expect(sent).toEqual(["0", "1"]);
});

test("a message that is found due during a stop is not sent", async () => {
  const sent: string[] = [];
  box = makeBox([scripted(({ text }) => (sent.push(text[0]!), { kind: "sent" }))]);
  const { store } = box;
  const text = { groupId: "g", target: { channel: "scripted", to: "ann" }, text: "0", now: Date.now() };
  await store.write(() => box.outbox.add(text));
  const read = store.read.bind(store);
  const found = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  store.read = async (script) => {
    const heads = await read(script);
    found.resolve();
    await released.promise;
    return heads;
  };
  await run(box.outbox);
  await found.promise;
  const stopped = box.outbox.stop();
  released.resolve();
  await stopped;
  store.read = read;
  expect([await states("g"), sent]).toEqual([["queued"], []]);
});

test("stop aborts a send after the grace period", async () => {
  const begun = Promise.withResolvers<void>();
  const hanging = scripted(({ signal }) => {
    begun.resolve();
    return new Promise((resolve) =>
      signal.addEventListener("abort", () => resolve({ kind: "unknown", reason: "stopped" }), { once: true }),
    );
  });
  await start([hanging]);
  void put("g", "hello");
  await begun.promise;
  expect(await states("g")).toEqual(["sending"]);
  await box.outbox.stop({ graceMs: 10 });
  expect(await states("g")).toEqual(["unknown"]);
});

test.skipIf(postgresUrl !== undefined)(
  "a disk that is full for a while loses no message id and repeats no send",
  async () => {
    let sends = 0;
    await start([
      scripted(async () => {
        sends++;
        await box.store.write(() =>
          execute("CREATE TRIGGER full BEFORE UPDATE ON outbox BEGIN SELECT RAISE(ABORT, 'disk full'); END"),
        );
        setTimeout(() => void box.store.write(() => execute("DROP TRIGGER full")), 50);
        return { kind: "sent", messageId: "m" };
      }),
    ]);
    expect(await put("g", "hello")).toEqual({ kind: "sent", messageIds: ["m"] });
    expect(sends).toBe(1);
  },
);

test("a send interrupted by a crash is repeated only while the platform drops repeats", async () => {
  const keys: string[] = [];
  const plain = scripted(() => ({ kind: "sent" }));
  const careful = scripted(({ key }) => (keys.push(key), { kind: "sent" }), { id: "careful", dedupeMs: 60_000 });
  box = makeBox([plain, careful]);
  const now = Date.now();
  for (const [groupId, channel, sendingAt] of [
    ["lost", "scripted", now],
    ["found", "careful", now],
    ["late", "careful", now - 61_000],
    ["orphan", "nowhere", now],
  ] as const) {
    await box.store.write(() => box.outbox.add({ groupId, target: { channel, to: groupId }, text: "hello", now }));
    await box.store.write(() =>
      execute(
        "UPDATE outbox SET state = 'sending', attempts = 1, sending_at = $1 WHERE group_id = $2",
        sendingAt,
        groupId,
      ),
    );
  }
  const settled: Settled[] = [];
  await run(box.again({ onSettle: (each) => answering(void settled.push(each)) }));
  while (settled.length < 4) await Bun.sleep(5);
  const kinds = Object.fromEntries(settled.map(({ groupId, kind }) => [groupId, kind]));
  expect(kinds).toEqual({ lost: "unknown", found: "sent", late: "unknown", orphan: "unknown" });
  expect(keys).toEqual([(await box.store.read(() => textMessages("found")))[0]!.key]);
});

test("ended messages are deleted after a time, and open ones are kept", async () => {
  await start([scripted(() => ({ kind: "sent" }))]);
  await put("g", lines(3));
  await box.outbox.stop();
  const open = { groupId: "open", target: { channel: "scripted", to: "ann" }, text: "hi", now: 5 };
  await box.store.write(() => box.outbox.add(open));
  expect(await box.store.read(() => outboxStats())).toEqual({ queued: 1, sending: 0 });
  expect(await box.store.write(() => pruneOutbox(Date.now() - 60_000))).toBe(0);
  expect(await box.store.write(() => pruneOutbox(Date.now() + 1))).toBe(3);
  expect(await states("open")).toEqual(["queued"]);
});

test("a long text reaches a platform whole, over a real socket, in spite of two 429s", async () => {
  const server = startPlatform("discord");
  const channels = await channelsFrom({ discord: sectionFor("discord", server.url) });
  await start([...channels.values()]);
  const text = Array.from({ length: 300 }, (_, i) => `Line ${i} of a long answer.`).join("\n");
  let refusals = 2;
  server.reply = () => (refusals-- > 0 ? Response.json({ retry_after: 0.05 }, { status: 429 }) : undefined);
  const outcome = await put("g", text, { channel: "discord", to: "channel:123456789" });
  expect(outcome).toMatchObject({ kind: "sent" });
  const nonces = server.seen.map(({ body }) => body["nonce"]);
  expect(
    server
      .texts()
      .filter((_, i) => nonces.indexOf(nonces[i]) === i)
      .join("\n"),
  ).toBe(text);
  expect(server.wrong).toEqual([]);
  server.stop();
});
