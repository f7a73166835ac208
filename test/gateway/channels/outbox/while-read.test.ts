/** Changes between the outbox's read of its messages and its actions. */
import { afterEach, expect, test } from "bun:test";
import { alone, type Lease } from "../../../../src/gateway/database/peers.ts";
import { execute } from "../../../../src/gateway/database/store.ts";
import type { Channel, SendOutcome } from "../../../../src/gateway/channels/channel.ts";
import { dueHeads } from "../../../../src/gateway/channels/outbox/lane-heads.ts";
import { textMessages } from "../../../../src/gateway/channels/outbox/messages.ts";
import type { OutboxDeps } from "../../../../src/gateway/channels/outbox/outbox.ts";
import { eventually } from "../../../e2e/hearth.ts";
import { makeBox, scripted, type Box } from "../fixtures.ts";

let box: Box;
afterEach(async () => {
  await box.outbox.stop({ graceMs: 0 });
  await box.remove();
});

async function start(channels: readonly Channel[], more: Partial<OutboxDeps> = {}): Promise<Box> {
  box = makeBox(channels, more);
  await box.outbox.start();
  return box;
}

const row = async () => (await box.store.read(() => textMessages("g")))[0]!;

test("a message that another node was sending has an unknown outcome when this node takes the channel over", async () => {
  let sends = 0;
  let isHeld = false;
  let tell: Parameters<Lease["onChange"]>[0] = () => {};
  const lease: Lease = {
    get isHeld() {
      return isHeld;
    },
    *holds() {
      yield* [];
      return isHeld;
    },
    onChange: (listener) => void (tell = listener),
  };
  const peers = { ...alone(), lease: () => lease };
  const { store, outbox } = await start([scripted(() => (sends++, { kind: "sent" }))], { peers });
  await store.write(() => outbox.add({ groupId: "g", target: { channel: "scripted", to: "ann" }, text: "x", now: 0 }));
  await store.write(() => execute("UPDATE outbox SET state = 'sending', attempts = 1, sending_at = 1"));
  const read = store.read.bind(store);
  store.read = async (work) => {
    const result = await read(work);
    store.read = read;
    tell((isHeld = true)); // since the read
    return result;
  };
  outbox.poke();
  expect(await eventually(async () => (await row()).state !== "sending")).toBe(true);
  expect([(await row()).state, sends]).toEqual(["unknown", 0]);
});

test("an attempt that ends during the search for due messages is not repeated before its time", async () => {
  let sends = 0;
  const outcome = Promise.withResolvers<SendOutcome>();
  const { store, outbox } = await start([scripted(() => (sends++, outcome.promise))]);
  const target = { channel: "scripted", to: "ann" };
  await store.write(() => outbox.add({ groupId: "g", target, text: "x", now: Date.now() }));
  outbox.poke();
  expect(await eventually(() => sends === 1)).toBe(true);
  const ended = Promise.withResolvers<void>();
  const write = store.write.bind(store);
  store.write = (work) => write(work).finally(() => setImmediate(ended.resolve)); // once the outbox has noticed it
  const done = Promise.withResolvers<void>();
  const read = store.read.bind(store);
  const readNext: typeof read = (work) => {
    store.read = read;
    done.resolve(); // with the first result: it looks again
    return read(work);
  };
  store.read = async (work) => {
    store.read = readNext;
    const result = await read(work);
    outcome.resolve({ kind: "retry", reason: "the platform answered 502" }); // since the read
    await ended.promise;
    return result;
  };
  outbox.poke();
  await done.promise;
  await outbox.stop();
  const { state, attempts } = await row();
  expect([state, attempts, sends]).toEqual(["queued", 1, 1]);
});

test("a message whose state is stored after the grace period is not sent, and waits for the next start", async () => {
  let sends = 0;
  box = makeBox([scripted(() => (sends++, { kind: "sent" }))]);
  const { store, outbox } = box;
  const target = { channel: "scripted", to: "ann" };
  await store.write(() => outbox.add({ groupId: "g", target, text: "x", now: Date.now() }));
  const write = store.write.bind(store);
  const isOver = Promise.withResolvers<void>();
  const marked = Promise.withResolvers<void>();
  store.write = async (work) => {
    const result = await write(work);
    if ((await row()).state === "sending") {
      store.write = write;
      marked.resolve();
      await isOver.promise;
    }
    return result;
  };
  await outbox.start();
  await marked.promise;
  const stopped = outbox.stop({ graceMs: 1 });
  await Bun.sleep(20);
  isOver.resolve();
  await stopped;
  const { state, reason } = await row();
  expect([state, reason, sends]).toEqual(["queued", "the process stopped before it was sent", 0]);
});

test("the search for due messages reads no texts", async () => {
  const { store, outbox } = await start([]);
  const target = { channel: "scripted", to: "ann" };
  await store.write(() => outbox.add({ groupId: "g", target, text: "x", now: Date.now() }));
  const heads = await store.read(dueHeads);
  expect(heads).toHaveLength(1);
  expect(heads[0]).not.toHaveProperty("text");
});
