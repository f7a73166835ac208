import { describe, expect, test } from "bun:test";
import { FAILURES_MAX, Throttle, WINDOW_MS } from "../../../../src/gateway/hooks/ingress/throttle.ts";

function makeThrottle(): { throttle: Throttle; clock: { now: number }; fail: (key: string, times: number) => void } {
  const clock = { now: 1_000_000 };
  const throttle = new Throttle(() => clock.now);
  return {
    throttle,
    clock,
    fail: (key, times) => {
      for (let i = 0; i < times; i++) throttle.fail(key);
    },
  };
}

describe("throttle:", () => {
  test("twenty failures lock an address, and the next failure returns the remaining time", () => {
    const { throttle, fail } = makeThrottle();
    fail("a", 18);
    expect(throttle.fail("a")).toMatchObject({ remaining: 1 });
    expect(throttle.fail("a")).toEqual({ remaining: 0, resetMs: 60_000 });
    expect(throttle.fail("a")).toMatchObject({ lockedForMs: 60_000 });
    expect(throttle.fail("b")).toMatchObject({ remaining: 19 });
  });

  test("failures during a lock do not extend it", () => {
    const { throttle, clock, fail } = makeThrottle();
    fail("a", FAILURES_MAX);
    clock.now += 59_000;
    fail("a", 50);
    expect(throttle.fail("a")).toMatchObject({ lockedForMs: 1000 });
    clock.now += 1000;
    expect(throttle.fail("a")).toMatchObject({ remaining: 19 });
  });

  test("a window begins at its first failure and ends after exactly one minute", () => {
    const { throttle, clock, fail } = makeThrottle();
    fail("a", 19);
    clock.now += WINDOW_MS - 1;
    expect(throttle.fail("a")).toMatchObject({ remaining: 0 });
    fail("b", 19);
    clock.now += WINDOW_MS;
    expect(throttle.fail("b")).toMatchObject({ remaining: 19 });
  });

  test("locks and windows end when the clock is set back before them", () => {
    const { throttle, clock, fail } = makeThrottle();
    fail("locked", FAILURES_MAX);
    fail("counted", 10);
    clock.now -= 3_600_000;
    expect(throttle.isLocked("locked")).toBe(false);
    expect(throttle.fail("locked")).toEqual({ remaining: 19, resetMs: WINDOW_MS });
    expect(throttle.fail("counted")).toEqual({ remaining: 19, resetMs: WINDOW_MS });
  });

  test("a correct credential clears failures and lock", () => {
    const { throttle, fail } = makeThrottle();
    fail("a", 19);
    throttle.clear("a");
    expect(throttle.fail("a")).toMatchObject({ remaining: 19 });
    fail("a", FAILURES_MAX);
    throttle.clear("a");
    expect(throttle.fail("a")).toMatchObject({ remaining: 19 });
  });

  test("a million addresses use at most ten thousand entries, and existing locks are kept", () => {
    const { throttle, fail } = makeThrottle();
    fail("locked", FAILURES_MAX);
    for (let i = 0; i < 1_000_000; i++) throttle.fail(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`);
    expect(throttle.size).toBeLessThanOrEqual(10_001);
    expect(throttle.size).toBeGreaterThan(5000);
    expect(throttle.fail("locked")).toHaveProperty("lockedForMs");
  }, 60_000);

  test("the latest five thousand addresses are kept", () => {
    const { throttle, fail } = makeThrottle();
    for (let i = 0; i < 50_000; i++) throttle.fail(`b${i}`);
    fail("a", 18);
    for (let i = 0; i < 4990; i++) throttle.fail(`c${i}`);
    expect(throttle.fail("a")).toMatchObject({ remaining: 1 });
  });

  test("every failure is refused while there is no room for another lock", () => {
    const { throttle, clock, fail } = makeThrottle();
    for (let i = 0; i < 10_000; i++) fail(`a${i}`, FAILURES_MAX);
    expect(throttle.fail("new")).toHaveProperty("lockedForMs");
    expect(throttle.size).toBe(10_000);
    clock.now += 60_000;
    expect(throttle.fail("new")).toMatchObject({ remaining: 19 });
    expect(throttle.size).toBe(1);
  }, 60_000);

  test("setting the clock back frees room for locks", () => {
    const { throttle, clock, fail } = makeThrottle();
    for (let i = 0; i < 10_000; i++) fail(`a${i}`, FAILURES_MAX);
    expect(throttle.fail("new")).toHaveProperty("lockedForMs");
    clock.now -= 3_600_000;
    expect(throttle.fail("new")).toMatchObject({ remaining: 19 });
  }, 60_000);
});
