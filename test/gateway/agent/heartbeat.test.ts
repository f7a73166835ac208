import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Heartbeat, type HeartbeatStatus } from "../../../src/gateway/agent/heartbeat.ts";
import { historyOf } from "../../../src/gateway/agent/sessions.ts";
import { AppError } from "../../../src/base/errors.ts";
import { makeLogger } from "../../../src/base/log.ts";
import { alone, type Lease } from "../../../src/gateway/database/peers.ts";
import { execute } from "../../../src/gateway/database/store.ts";
import { afterTest } from "../../cleanups.ts";
import { answering } from "../../stores.ts";
import { EVERY, MINUTE, nowhereToSend, testHeart, waitingCount, withHeartbeat, type TestHeart } from "./hearts.ts";
import { MAIN, settingsOf } from "./parts.ts";

describe("the timer", () => {
  test("runs a turn every half hour, and shows the waiting events", async () => {
    const test = testHeart(() => ({ text: "Disk almost full" }));
    await test.wake("disk at 99%", { wantsHeartbeat: false });
    await test.heart.start();
    test.clock.advance(EVERY - 1);
    expect(test.runtime.requests.length).toBe(0);
    test.clock.advance(1);
    expect(await test.next()).toMatchObject({ kind: "sent", reasons: ["timer"], preview: "Disk almost full" });
    expect(test.runtime.requests[0]?.messages[0]?.content).toMatch(
      /^System: \[2026-01-05T12:00:00Z\] disk at 99%\n\nThe system events above .*HEARTBEAT_OK and nothing else\./s,
    );
    expect(test.sent).toMatchObject([{ text: "Disk almost full", target: { channel: "telegram", to: "42" } }]);
    expect(await waitingCount(test)).toBe(0);
    await test.wake("disk at 100%", { wantsHeartbeat: false });
    test.clock.advance(EVERY);
    expect((await test.next()).reasons).toEqual(["timer"]);
  });

  test("runs no turn without events and prompt, and runs one with a configured prompt", async () => {
    const idle = testHeart(() => ({ text: "HEARTBEAT_OK" }));
    await idle.heart.start();
    idle.clock.advance(EVERY);
    expect(await idle.next()).toMatchObject({ kind: "skipped", reason: "no events wait, and there is no prompt" });
    expect(idle.runtime.requests).toEqual([]);
    const busy = testHeart(() => ({ text: "HEARTBEAT_OK" }), { settings: withHeartbeat({ prompt: "Is all well?" }) });
    await busy.heart.start();
    busy.clock.advance(EVERY);
    expect((await busy.next()).kind).toBe("ok-token");
    expect(busy.runtime.requests[0]?.messages[0]?.content).toStartWith("Is all well?\n\nIf nothing needs attention");
    expect((await busy.store.read(() => historyOf(MAIN))).messages).toEqual([]); // nothing happened
  });

  test("runs no turn at an interval of 0 or outside of active hours", async () => {
    const off = testHeart(() => ({ text: "HEARTBEAT_OK" }), { settings: withHeartbeat({ every: 0, prompt: "well?" }) });
    await off.heart.start();
    expect(off.clock.due).toEqual([]);
    const hours = { start: "08:00", end: "12:30", timezone: "UTC" };
    const quiet = testHeart(() => ({ text: "yes" }), {
      settings: withHeartbeat({ activeHours: hours, prompt: "well?" }),
    });
    await quiet.heart.start();
    quiet.clock.advance(EVERY);
    expect(await quiet.next()).toMatchObject({ kind: "skipped", reason: "outside of active hours" });
    quiet.clock.advance(19.5 * 60 * MINUTE); // to eight in the morning
    const first = await quiet.next();
    expect(first).toMatchObject({ kind: "skipped", at: Date.UTC(2026, 0, 5, 13) });
    for (let status = first; status.kind === "skipped";) status = await quiet.next();
    expect(quiet.statuses.at(-1)).toMatchObject({ kind: "sent", at: Date.UTC(2026, 0, 6, 8) });
    expect(quiet.runtime.requests.length).toBe(1);
  });

  test("applies a changed interval", async () => {
    let every = 0;
    const test = testHeart(() => ({ text: "yes" }));
    const heart = new Heartbeat({
      peers: alone(),
      ...test.parts,
      agent: test.agent,
      settings: () => withHeartbeat({ every }),
      delivery: nowhereToSend,
      log: makeLogger({ write: () => {}, now: Date.now, debug: false }),
    });
    afterTest(() => heart.stop());
    await heart.start();
    expect(test.clock.due).toEqual([]);
    every = 5;
    heart.reschedule();
    expect(test.clock.due).toEqual([test.clock.now() + 5 * MINUTE]);
    every = 0;
    heart.reschedule();
    expect(test.clock.due).toEqual([]);
  });
});

describe("a request", () => {
  test.each([
    ["while the timer is off", { every: 0 }],
    ["in quiet hours", { activeHours: { start: "01:00", end: "02:00", timezone: "UTC" } }],
  ])("runs its heartbeat at once %s", async (_, heartbeat) => {
    const test = testHeart(() => ({ text: "On it" }), { settings: withHeartbeat(heartbeat) });
    await test.heart.start();
    await test.wake("deploy failed");
    test.heart.request("wake");
    test.clock.advance(250);
    expect(await test.next()).toMatchObject({ kind: "sent", reasons: ["wake"] });
  });

  test("shares its heartbeat with other requests of the same moment", async () => {
    const test = testHeart(() => ({ text: "On it" }));
    for (const text of ["a", "b", "c"]) {
      await test.wake(text);
      test.heart.request(`hook ${text}`);
      test.clock.advance(80);
    }
    test.clock.advance(170);
    expect((await test.next()).reasons).toEqual(["hook a", "hook b", "hook c"]);
    expect(test.runtime.requests.length).toBe(1);
  });

  test("during a running heartbeat gets the next one, which shows every new event", async () => {
    let finish = (): void => {};
    const until = new Promise<void>((resolve) => (finish = resolve));
    let begun = (): void => {};
    const running = new Promise<void>((resolve) => (begun = resolve));
    const test = testHeart((_, i) => {
      if (i > 0) return { text: "second" };
      begun();
      return { text: "first", until };
    });
    await test.wake("a");
    test.heart.request("one");
    test.clock.advance(250);
    await running;
    await test.wake("a");
    await test.wake("b");
    test.heart.request("two");
    test.clock.advance(1000);
    expect(test.runtime.requests.length).toBe(1);
    finish();
    expect((await test.next()).preview).toBe("first");
    test.clock.advance(250);
    expect((await test.next()).reasons).toEqual(["two", "requests while another one ran"]);
    const shown = test.runtime.requests[1]!.messages.at(-1)!.content;
    expect(shown.match(/System: .*/g)).toEqual([expect.stringMatching(/\] a$/), expect.stringMatching(/\] b$/)]);
    expect(await waitingCount(test)).toBe(0);
  });

  test("together with the timer's check runs one heartbeat at a time", async () => {
    const test = testHeart(() => ({ text: "On it" }));
    await test.heart.start();
    test.clock.advance(EVERY - 100);
    await test.wake("a");
    test.heart.request("wake");
    test.clock.advance(250); // the heartbeat of the timer begins first
    expect((await test.next()).reasons).toEqual(["timer"]);
    test.clock.advance(250);
    expect(await test.next()).toMatchObject({ kind: "skipped", reasons: ["wake", "requests while another one ran"] });
    expect(test.runtime.requests.length).toBe(1);
  });

  test("is followed by another heartbeat if more events wait than one turn shows", async () => {
    const test = testHeart((_, i) => ({ text: `reply ${i}` }));
    for (let i = 0; i < 60; i++) await test.wake(`event ${i}`);
    test.heart.request("wake");
    test.clock.advance(250);
    await test.next();
    expect(await waitingCount(test)).toBe(10);
    test.clock.advance(250);
    expect((await test.next()).reasons).toEqual(["more events wait"]);
    expect(await waitingCount(test)).toBe(0);
  });
});

describe("a reply", () => {
  async function beatOnce(test: TestHeart): Promise<HeartbeatStatus> {
    test.heart.request("wake");
    test.clock.advance(250);
    return test.next();
  }

  test("is not sent if it is an acknowledgement, and its events are consumed", async () => {
    const test = testHeart(() => ({ text: "**HEARTBEAT_OK** all quiet" }));
    await test.wake("cron ran");
    expect(await beatOnce(test)).toMatchObject({ kind: "ok-token", preview: "all quiet" });
    expect([
      test.sent.length,
      await waitingCount(test),
      (await test.store.read(() => historyOf(MAIN))).messages.length,
    ]).toEqual([0, 0, 2]);
  });

  test("without text is not sent", async () => {
    const test = testHeart(() => ({}));
    await test.wake("cron ran");
    expect((await beatOnce(test)).kind).toBe("ok-empty");
  });

  test("with more text than ackMaxChars is sent without the acknowledgement", async () => {
    const test = testHeart(() => ({ text: `HEARTBEAT_OK ${"x".repeat(11)}` }), {
      settings: withHeartbeat({ ackMaxChars: 10 }),
    });
    await test.wake("cron ran");
    expect((await beatOnce(test)).kind).toBe("sent");
    expect(test.sent[0]?.text).toBe("x".repeat(11));
  });

  test("is not sent again within a day", async () => {
    const test = testHeart(() => ({ text: "Disk almost full" }));
    const kinds: string[] = [];
    for (const hours of [0, 23, 2]) {
      test.clock.advance(hours * 60 * MINUTE);
      await test.wake(`disk after ${hours}`);
      kinds.push((await beatOnce(test)).kind);
    }
    expect(kinds).toEqual(["sent", "skipped", "sent"]);
    expect(test.sent.length).toBe(2);
  });

  test("is sent again if the clock was a year ahead when it was sent before", async () => {
    const test = testHeart(() => ({ text: "Disk almost full" }));
    for (const days of [365, -365]) {
      test.clock.advance(days * 24 * 60 * MINUTE);
      await test.wake("disk");
      expect((await beatOnce(test)).kind).toBe("sent");
    }
    expect(test.sent.length).toBe(2);
  });

  test("is not sent if another reply to its events is already under way", async () => {
    const test = testHeart(() => ({ text: "A mail came" }));
    await test.wake("Hook Mail: a mail came", { isDelivered: true });
    expect(await beatOnce(test)).toMatchObject({ kind: "skipped", reason: "a reply is on its way to people already" });
    expect(test.runtime.requests[0]?.messages[0]?.content).toContain("(for your information: a reply with this is on");
    await test.wake("Hook Mail: another", { isDelivered: true });
    await test.wake("disk full");
    expect((await beatOnce(test)).kind).toBe("sent");
  });

  test("without a target is stored, and the reason is reported", async () => {
    const nowhere = testHeart(() => ({ text: "hello" }), { target: { reason: "no channel is configured" } });
    await nowhere.wake("a");
    expect(await beatOnce(nowhere)).toMatchObject({ kind: "failed", reason: "no channel is configured" });
    expect([await waitingCount(nowhere), (await nowhere.store.read(() => historyOf(MAIN))).messages.length]).toEqual([
      0, 2,
    ]);
    const none = testHeart(() => ({ text: "hello" }), { settings: withHeartbeat({ target: "none" }) });
    await none.wake("a");
    expect(await beatOnce(none)).toMatchObject({
      kind: "skipped",
      reason: "agents.defaults.heartbeat.target is 'none'",
    });
  });

  test("is marked if it was cut off by the token limit", async () => {
    const test = testHeart(() => ({ text: "and so", reason: "length" }));
    await test.wake("a");
    await beatOnce(test);
    expect(test.sent[0]?.text).toBe("and so […]");
  });
});

describe("a heartbeat that fails", () => {
  test("keeps its events and is tried again with growing delays until it succeeds", async () => {
    const test = testHeart((_, i) => (i < 3 ? { error: new AppError("runner", "the model died") } : { text: "back" }));
    await test.wake("a");
    test.heart.request("wake");
    test.clock.advance(250);
    for (const delayMs of [1000, 2000, 4000]) {
      expect(await test.next()).toMatchObject({ kind: "failed", reason: "the model died" });
      expect(await waitingCount(test)).toBe(1);
      await Bun.sleep(0);
      test.clock.advance(delayMs - 1);
      expect(test.clock.due.some((at) => at <= test.clock.now() + 1)).toBe(true);
      test.clock.advance(1 + 250);
    }
    expect(await test.next()).toMatchObject({ kind: "sent", reasons: ["another try"] });
    expect(await waitingCount(test)).toBe(0);
  });

  test("because its turn cannot be stored sends nothing, and keeps its events", async () => {
    const test = testHeart(() => {
      const until = test.store.write(() => execute("DROP TABLE session_entries"));
      return { text: "lost", until };
    });
    await test.wake("a");
    test.heart.request("wake");
    test.clock.advance(250);
    expect(await test.next()).toMatchObject({ kind: "failed", reason: expect.stringContaining("session_entries") });
    expect(await waitingCount(test)).toBe(1);
  });

  test("because the server stops keeps its events for the next start", async () => {
    const folder = mkdtempSync(join(tmpdir(), "hearth-heart-"));
    const path = join(folder, "gateway.db");
    try {
      let begun = (): void => {};
      const running = new Promise<void>((resolve) => (begun = resolve));
      const first = testHeart(
        () => {
          begun();
          return { text: "never", until: new Promise(() => {}) };
        },
        { path },
      );
      await first.wake("a");
      await first.wake("later", { wantsHeartbeat: false });
      first.heart.request("wake");
      first.clock.advance(250);
      await running;
      await first.heart.stop();
      expect([first.runtime.stopped.length, first.statuses.length, first.sent.length]).toEqual([1, 0, 0]);
      first.heart.request("after the end");
      expect(first.clock.due).toEqual([]);
      await first.store.close();
      const second = testHeart(() => ({ text: "here" }), { path });
      await second.heart.start();
      second.clock.advance(250);
      expect(await second.next()).toMatchObject({ kind: "sent", reasons: ["events that waited for the server"] });
      expect(await waitingCount(second)).toBe(0);
      await second.store.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("does not delay the timer's next check after a restart", async () => {
    const folder = mkdtempSync(join(tmpdir(), "hearth-heart-"));
    const path = join(folder, "gateway.db");
    try {
      const first = testHeart(() => ({ text: "one" }), { path });
      await first.wake("a");
      first.heart.request("wake");
      first.clock.advance(250);
      await first.next();
      const lastAt = first.clock.now();
      await first.store.close();
      const second = testHeart(() => ({ text: "two" }), { path });
      second.clock.advance(20 * MINUTE);
      await second.heart.start();
      expect(second.clock.due).toEqual([lastAt + EVERY]);
      await second.store.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

test.each([
  ["soon after: it runs", 9_999, [250]],
  ["later: another node has run it", 10_000, []],
])("a request made before a node holds the lease, %s", async (_, ms, due) => {
  let isHeld = false;
  const lease: Lease = {
    get isHeld() {
      return isHeld;
    },
    holds: () => answering(isHeld),
    onChange: () => {},
  };
  const heart = testHeart(() => ({ text: "here" }), { lease, settings: withHeartbeat({ every: 0 }) });
  heart.heart.request("a person");
  expect(heart.clock.due).toEqual([]);
  heart.clock.advance(ms);
  isHeld = true;
  await heart.heart.start();
  expect(heart.clock.due).toEqual(due.map((after) => heart.clock.now() + after));
});

test.each([
  ["at once", true],
  ["before its next request to the model if the process hears it late", false],
])("a heartbeat ends if another node takes the lease, %s", async (_, isTold) => {
  let isHeld = true;
  let tell = (_isHeld: boolean): void => {};
  const lease: Lease = {
    get isHeld() {
      return isHeld;
    },
    holds: () => answering(isHeld),
    onChange: (listener) => (tell = listener),
  };
  const never = new Promise<void>(() => {});
  const lose = (): void => {
    isHeld = false;
    if (isTold) tell(false);
  };
  const heart = testHeart(
    () => {
      lose();
      return isTold
        ? { text: "late", until: never }
        : { calls: [{ function: { name: "current_time", arguments: {} } }] };
    },
    { lease, settings: settingsOf({ defaults: { tools: ["current_time"], heartbeat: { every: 0, prompt: "look" } } }) },
  );
  await heart.heart.start();
  heart.heart.request("a person");
  heart.clock.advance(250);
  expect(await heart.next()).toMatchObject({ kind: "skipped", reason: "another node leads by now" });
  expect([heart.runtime.requests.length, heart.sent]).toEqual([1, []]);
});
