/** A clock that was ahead and is corrected: no message waits for the wrong time. */
import { expect, test } from "bun:test";
import { textMessages, textOutcome } from "../../../../src/gateway/channels/outbox/messages.ts";
import { afterTest } from "../../../cleanups.ts";
import { eventually } from "../../../e2e/hearth.ts";
import { makeBox, scripted } from "../fixtures.ts";

const DAY_MS = 24 * 3_600_000;

test("messages stored while the clock was ahead are sent once it is set back", async () => {
  let aheadMs = DAY_MS;
  const now = (): number => Date.now() + aheadMs;
  const sent: string[] = [];
  const channel = scripted(({ text }) => (sent.push(text), { kind: "sent" }), { spacingMs: 60_000 });
  const box = makeBox([channel], { now });
  afterTest(() => box.remove());
  const put = (groupId: string): Promise<void> =>
    box.store.write(() =>
      box.outbox.add({ groupId, target: { channel: "scripted", to: "ann" }, text: groupId, now: now() }),
    );
  await put("first");
  await box.outbox.start();
  afterTest(() => box.outbox.stop({ graceMs: 0 }));
  expect(await eventually(async () => (await box.store.read(() => textOutcome("first")))?.kind === "sent")).toBe(true);
  await put("second"); // a minute from now, tomorrow
  aheadMs = 0;
  box.outbox.poke();
  expect(await eventually(() => sent.length === 2)).toBe(true);
  expect(sent).toEqual(["first", "second"]);
});

test("retries after the clock was set back keep their delays", async () => {
  let aheadMs = DAY_MS;
  const now = (): number => Date.now() + aheadMs;
  const tries: number[] = [];
  const channel = scripted(() => (tries.push(performance.now()), { kind: "retry", reason: "busy" }));
  const box = makeBox([channel], { now, random: () => 0 });
  afterTest(() => box.remove());
  const text = { groupId: "g", target: { channel: "scripted", to: "ann" }, text: "hello", now: now() };
  await box.store.write(() => box.outbox.add(text));
  aheadMs = 0;
  await box.outbox.start();
  afterTest(() => box.outbox.stop({ graceMs: 0 }));
  expect(await eventually(() => tries.length >= 3)).toBe(true);
  expect(tries[1]! - tries[0]!).toBeGreaterThan(900);
  expect(tries[2]! - tries[1]!).toBeGreaterThan(1900);
});

test("a retry scheduled while the clock was ahead runs once it is set back", async () => {
  let aheadMs = 0;
  const now = (): number => Date.now() + aheadMs;
  let tries = 0;
  const channel = scripted(() => (tries++ === 0 ? { kind: "retry", reason: "busy" } : { kind: "sent" }));
  const box = makeBox([channel], { now });
  afterTest(() => box.remove());
  const text = { groupId: "g", target: { channel: "scripted", to: "ann" }, text: "hello", now: now() };
  await box.store.write(() => box.outbox.add(text));
  aheadMs = DAY_MS / 2;
  await box.outbox.start();
  afterTest(() => box.outbox.stop({ graceMs: 0 }));
  const isPutOff = async (): Promise<boolean> =>
    (await box.store.read(() => textMessages("g")))[0]!.reason === "busy" && tries === 1;
  expect(await eventually(isPutOff)).toBe(true);
  aheadMs = 0;
  box.outbox.poke();
  expect(await eventually(async () => (await box.store.read(() => textOutcome("g")))?.kind === "sent")).toBe(true);
});
