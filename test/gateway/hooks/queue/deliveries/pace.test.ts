import { expect, test } from "bun:test";
import { Pace } from "../../../../../src/gateway/hooks/queue/deliveries/pace.ts";

function start() {
  const clock = { now: 1_000_000 };
  return { clock, pace: new Pace(() => clock.now) };
}

test("room comes as fast as runs ended in the last minute, of all or of a lane", () => {
  const { clock, pace } = start();
  for (let i = 0; i < 60; i++) {
    clock.now += 1000;
    pace.ended(i % 3 === 0 ? "a" : "b");
  }
  expect(pace.msUntil(1)).toBe(1000);
  expect(pace.msUntil(10)).toBe(10_000);
  expect(pace.msUntil(10, "a")).toBe(30_000);
  clock.now += 30_000; // and nothing since
  expect(pace.msUntil(10)).toBeWithin(19_000, 22_000);
});

test("other nodes end as many", () => {
  const clock = { now: 1_000_000 };
  const pace = new Pace(
    () => clock.now,
    () => 3,
  );
  expect(pace.msUntil(10)).toBe(60_000);
  clock.now += 30_000;
  pace.ended("a");
  expect(pace.msUntil(6)).toBe(60_000);
});

test("soon after the start it counts from the start", () => {
  const { clock, pace } = start();
  clock.now += 2000;
  pace.ended("a");
  expect(pace.msUntil(3)).toBe(6000);
});

test("where nothing ended of late: a minute; never more than five", () => {
  const { clock, pace } = start();
  expect(pace.msUntil(1)).toBe(60_000);
  pace.ended("a");
  expect(pace.msUntil(1, "b")).toBe(60_000);
  clock.now += 59_999;
  expect(pace.msUntil(1000)).toBe(300_000);
  clock.now += 2;
  expect(pace.msUntil(1)).toBe(60_000);
});

test("a thousand ends a second are measured by the last of them, in bounded memory", () => {
  const { clock, pace } = start();
  for (let i = 0; i < 20_000; i++) {
    clock.now += 1;
    pace.ended("a");
  }
  expect(pace.msUntil(5000)).toBeWithin(4500, 5500);
});
