import { describe, expect, test } from "bun:test";
import { EVERY, testHeart, withHeartbeat } from "./hearts.ts";

describe("while turns are paused", () => {
  test("the timer starts no turn until the pause ends", async () => {
    const test = testHeart(() => ({ text: "On it" }), { settings: withHeartbeat({ prompt: "Is all well?" }) });
    await test.heart.start();
    await test.peers.setPaused(true);
    test.clock.advance(EVERY);
    expect(await test.next()).toMatchObject({ kind: "skipped", reason: "turns are paused", reasons: ["timer"] });
    await test.peers.setPaused(false);
    test.clock.advance(EVERY);
    expect((await test.next()).kind).toBe("sent");
    expect(test.runtime.requests.length).toBe(1);
  });

  test("a requested heartbeat waits for the end of the pause", async () => {
    const test = testHeart(() => ({ text: "On it" }));
    await test.heart.start();
    await test.peers.setPaused(true);
    await test.wake("deploy failed");
    test.heart.request("wake");
    test.clock.advance(250);
    expect(test.clock.due).toEqual([test.clock.now() + EVERY - 250]); // the heartbeat of the timer
    await test.peers.setPaused(false);
    test.clock.advance(250);
    expect(await test.next()).toMatchObject({ kind: "sent", reasons: ["wake", "events that waited"] });
    expect(test.runtime.requests.length).toBe(1);
  });

  test("a heartbeat for events from before the start waits for the end of the pause", async () => {
    const test = testHeart(() => ({ text: "On it" }));
    await test.wake("deploy failed");
    await test.peers.setPaused(true);
    await test.heart.start();
    test.clock.advance(250);
    await test.peers.setPaused(false);
    test.clock.advance(250);
    expect((await test.next()).reasons).toEqual(["events that waited for the server", "events that waited"]);
  });
});
