/** Cancelled texts: messages that still leave. */
import { afterEach, expect, test } from "bun:test";
import type { Channel, SendOutcome } from "../../../../src/gateway/channels/channel.ts";
import { textMessages, textOutcome } from "../../../../src/gateway/channels/outbox/messages.ts";
import { makeBox, scripted, type Box } from "../fixtures.ts";

let box: Box;
afterEach(async () => {
  await box.outbox.stop({ graceMs: 0 });
  await box.remove();
});

async function start(channels: readonly Channel[]): Promise<void> {
  box = makeBox(channels);
  await box.outbox.start();
}

/** Resolves with how the text ended. */
async function put(groupId: string, text: string) {
  const { promise, resolve } = Promise.withResolvers<void>();
  const target = { channel: "scripted", to: "ann" };
  box.outbox.onSettled((id) => id === groupId && resolve());
  await box.store.write(() => box.outbox.add({ groupId, target, text, now: Date.now() }));
  box.outbox.poke();
  await promise;
  return box.store.read(() => textOutcome(groupId));
}

const states = async (groupId: string) => (await box.store.read(() => textMessages(groupId))).map((row) => row.state);
const lines = (n: number) => Array.from({ length: n }, (_, i) => `${i}${".".repeat(40)}`).join("\n");

test("a message cancelled before it is sent is not sent, and one that is being sent ends", async () => {
  const hang = Promise.withResolvers<{ kind: "sent" }>();
  const sent: string[] = [];
  await start([scripted(({ text }) => (sent.push(text[0]!), hang.promise))]);
  const done = put("g", lines(3));
  while (sent.length === 0) await Bun.sleep(5);
  await box.outbox.cancel("g");
  expect(await box.store.read(() => textOutcome("g"))).toBeUndefined();
  hang.resolve({ kind: "sent" });
  expect(await done).toMatchObject({ kind: "failed", reason: "cancelled" });
  expect(await states("g")).toEqual(["sent", "cancelled", "cancelled"]);
  await box.outbox.cancel("g"); // nothing is left to cancel
  expect(sent).toEqual(["0"]);
});

test.each([
  [{ kind: "retry", reason: "is down" }, "cancelled"],
  [{ kind: "unknown", reason: "broke off" }, "unknown"],
] as const)("a message cancelled while it is being sent is not tried again after %j", async (outcome, state) => {
  const hang = Promise.withResolvers<SendOutcome>();
  const sent: string[] = [];
  await start([scripted(({ text }) => (sent.push(text), hang.promise), { dedupeMs: 60_000 })]);
  const done = put("g", "hello");
  while (sent.length === 0) await Bun.sleep(5);
  expect(await box.outbox.cancel("g")).toEqual({ messages: 0, leaving: 1 });
  hang.resolve(outcome);
  expect(await done).toMatchObject({ kind: state === "unknown" ? "unknown" : "failed" });
  expect([await states("g"), sent]).toEqual([[state], ["hello"]]);
});
