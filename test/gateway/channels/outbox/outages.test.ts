import { expect, test } from "bun:test";
import { AppError } from "../../../../src/base/errors.ts";
import { makeLogger } from "../../../../src/base/log.ts";
import { textMessages } from "../../../../src/gateway/channels/outbox/messages.ts";
import { Outages } from "../../../../src/gateway/channels/outbox/outages.ts";
import { eventually } from "../../../e2e/hearth.ts";
import { makeBox, scripted } from "../fixtures.ts";

function recording() {
  const lines: Record<string, unknown>[] = [];
  const log = makeLogger({ write: (line) => void lines.push(JSON.parse(line)), now: () => 0, debug: true });
  const logged = () =>
    lines.map(({ level, channel, reason, seconds, attempts }) => ({ level, channel, reason, seconds, attempts }));
  return { log, lines, logged };
}

const on = (lane: string, channel = "slack") => ({ channel, lane });

test("an outage is logged once at its start, and once at its end with its duration", () => {
  const { log, logged } = recording();
  let now = 5000;
  const outages = new Outages({ log, now: () => now });
  for (let i = 0; i < 100; i++) outages.failed(on(i % 2 === 0 ? "a" : "b"), "answered 500");
  now = 65_000;
  outages.settled(on("a"));
  outages.settled(on("c")); // another recipient that never failed
  expect(logged()).toEqual([{ level: "warn", channel: "slack", reason: "answered 500" }] as never);
  outages.settled(on("b"));
  outages.settled(on("b"));
  expect(logged().slice(1)).toEqual([{ level: "info", channel: "slack", seconds: 60, attempts: 100 }] as never);
  outages.failed(on("a"), "again");
  expect(logged()).toHaveLength(3);
});

test("an outage that ends after the clock was set back has lasted no negative time", () => {
  const { log, logged } = recording();
  let now = 65_000;
  const outages = new Outages({ log, now: () => now });
  outages.failed(on("a"), "answered 500");
  now = 5000;
  outages.settled(on("a"));
  expect(logged().at(-1)).toEqual({ level: "info", channel: "slack", seconds: 0, attempts: 1 } as never);
});

test("the outages of different channels are logged separately", () => {
  const { log, logged } = recording();
  const outages = new Outages({ log, now: () => 0 });
  outages.failed(on("a"), "x");
  outages.failed(on("a", "telegram"), "y");
  outages.settled(on("a"));
  expect(logged().map(({ level, channel }) => `${String(level)} ${String(channel)}`)).toEqual([
    "warn slack",
    "warn telegram",
    "info slack",
  ]);
});

test("an outage also ends when its waiting messages are cancelled", () => {
  const { log, lines } = recording();
  const outages = new Outages({ log, now: () => 0 });
  outages.failed(on("a"), "x");
  outages.failed(on("b"), "x");
  outages.keep(new Set(["b", "other"]));
  expect([outages.any, lines.length]).toEqual([true, 1]);
  outages.keep(new Set(["other"]));
  expect([outages.any, lines.length]).toEqual([false, 2]);
});

test("a channel that is down for hours is logged in two lines, and every try is counted", async () => {
  const { log, lines } = recording();
  const outcomes: string[] = [];
  let isUp = false;
  let now = 1_000_000;
  const channel = scripted(() => (isUp ? { kind: "sent" } : { kind: "retry", reason: "the platform answered 502" }));
  const onTried = (id: string, kind: string) => void outcomes.push(`${id} ${kind}`);
  const box = makeBox([channel], { log, now: () => now, onTried });
  try {
    await box.outbox.start();
    const put = (groupId: string, to: string) =>
      box.store.write(() => box.outbox.add({ groupId, target: { channel: "scripted", to }, text: "hello", now }));
    await put("g1", "ann");
    await put("g2", "ben");
    const state = async (groupId: string) => (await box.store.read(() => textMessages(groupId)))[0]!;
    const until = async (check: () => boolean | Promise<boolean>) => {
      const deadline = Date.now() + 30_000;
      while (!(await check())) {
        if (Date.now() > deadline) throw new Error(`still ${JSON.stringify(await state("g1"))}`);
        box.outbox.poke();
        await Bun.sleep(2);
      }
    };
    for (let tries = 1; tries <= 36; tries++) {
      await until(async () =>
        [await state("g1"), await state("g2")].every((row) => row.attempts === tries && row.state === "queued"),
      );
      now += 400_000;
    }
    isUp = true;
    await until(async () => (await state("g1")).state === "sent" && (await state("g2")).state === "sent");
    await until(() => lines.length >= 2);
    expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
      ["warn", "a channel refuses messages; they will be retried"],
      ["info", "a channel's outage is over: no message is waiting for a retry"],
    ]);
    expect(lines[1]).toMatchObject({ channel: "scripted", attempts: 72 });
    expect(outcomes.filter((each) => each === "scripted retry")).toHaveLength(72);
    expect(outcomes.filter((each) => each === "scripted sent")).toHaveLength(2);
  } finally {
    await box.outbox.stop({ graceMs: 0 });
    await box.remove();
  }
});

test("a database outage and its end are logged once for each waiting task", async () => {
  const { log, lines } = recording();
  const sent = Promise.withResolvers<void>();
  const box = makeBox([scripted(async () => (await sent.promise, { kind: "sent" }))], { log });
  const { store, outbox } = box;
  await outbox.start();
  const target = { channel: "scripted", to: "ann" };
  await store.write(() => outbox.add({ groupId: "g", target, text: "x", now: Date.now() }));
  outbox.poke();
  const state = async () => (await store.read(() => textMessages("g")))[0]!.state;
  while ((await state()) !== "sending") await Bun.sleep(5);
  const { read, write } = store;
  const away = (): Promise<never> => Promise.reject(new AppError("storage", "the database is away"));
  Object.assign(store, { read: away, write: away });
  sent.resolve();
  for (let i = 0; i < 50; i++) {
    outbox.poke();
    await Bun.sleep(50); // storing the outcome is retried every second
  }
  Object.assign(store, { read: read.bind(store), write: write.bind(store) });
  outbox.poke();
  expect(await eventually(async () => (await state()) === "sent" && lines.length >= 4, 10_000)).toBe(true);
  const { key } = (await store.read(() => textMessages("g")))[0]!;
  const problems = [`storing the outcome of message ${key} failed`, "the outbox: the database failed"];
  expect(lines.map(({ msg }) => msg).toSorted()).toEqual(
    [...problems, ...problems.map((problem) => `recovered: ${problem}`)].toSorted(),
  );
  await outbox.stop({ graceMs: 0 });
  await box.remove();
});
