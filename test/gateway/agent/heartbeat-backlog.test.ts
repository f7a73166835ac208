/** More events than one turn shows. */
import { expect, test } from "bun:test";
import { AppError } from "../../../src/base/errors.ts";
import { EVERY, testHeart, waitingCount, type TestHeart } from "./hearts.ts";

const LATER = { wantsHeartbeat: false };

async function wakeAll(test: TestHeart, count: number, more = {}): Promise<void> {
  for (let i = 0; i < count; i++) await test.wake(`event ${i}`, more);
}

/** The next status, once any follow-up of the last heartbeat has started. */
async function beat(test: TestHeart, ms: number): Promise<string> {
  test.clock.advance(ms);
  const { kind, reasons } = await test.next();
  return `${kind}: ${reasons.join()}`;
}

test("the timer's check covers all events that wait then, in as many turns as needed, and no newer ones", async () => {
  const test = testHeart((_, i) => ({ text: `reply ${i}` }));
  await wakeAll(test, 70, LATER);
  await test.heart.start();
  expect(await beat(test, EVERY)).toBe("sent: timer");
  test.clock.advance(1);
  await wakeAll(test, 50, LATER);
  expect(await beat(test, 250)).toBe("sent: more events wait");
  expect(await waitingCount(test)).toBe(20);
  expect(test.clock.due).toHaveLength(1);
  expect(await beat(test, EVERY)).toBe("sent: timer");
  expect([await waitingCount(test), test.runtime.requests.length]).toEqual([0, 3]);
});

test("a check that is due while another heartbeat runs follows that heartbeat", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const test = testHeart((_, i) => {
    begun.resolve();
    return i === 0 ? { text: "first", until: promise } : { text: "second" };
  });
  await test.heart.start();
  test.clock.advance(EVERY - 300);
  await test.wake("disk full");
  test.heart.request("wake");
  test.clock.advance(250);
  await begun.promise;
  await test.wake("later", LATER);
  expect(await beat(test, 50)).toBe("skipped: timer");
  resolve();
  expect(await beat(test, 0)).toBe("sent: wake");
  expect(await beat(test, 250)).toBe("sent: more events wait");
  expect(await waitingCount(test)).toBe(0);
});

test("after a failed heartbeat, the remaining events wait for the next check", async () => {
  const test = testHeart((_, i) => (i === 1 ? { error: new AppError("runner", "the model died") } : { text: "yes" }));
  await wakeAll(test, 60, LATER);
  await test.heart.start();
  expect(await beat(test, EVERY)).toBe("sent: timer");
  expect(await beat(test, 250)).toBe("failed: more events wait");
  expect(test.clock.due).toHaveLength(1);
  expect(await beat(test, EVERY)).toBe("skipped: timer"); // the same reply was sent within a day
  expect(await waitingCount(test)).toBe(0);
});

test("a heartbeat whose answer has no target does not delay the remaining events", async () => {
  const test = testHeart(() => ({ text: "yes" }), { target: { reason: "no channel is configured" } });
  await wakeAll(test, 90);
  test.heart.request("wake");
  expect(await beat(test, 250)).toBe("failed: wake");
  expect(await beat(test, 250)).toBe("failed: more events wait");
  expect(await waitingCount(test)).toBe(0);
});
