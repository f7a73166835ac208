import { expect, test } from "bun:test";
import { EndRate } from "../../../../../src/gateway/hooks/queue/deliveries/end-rate.ts";

function start() {
  const clock = { now: 1_000_000 };
  return { clock, rate: new EndRate(() => clock.now) };
}

test("the wait follows the runs that ended in the last minute, of all or of one lane", () => {
  const { clock, rate } = start();
  for (let i = 0; i < 60; i++) {
    clock.now += 1000;
    rate.ended(i % 3 === 0 ? "a" : "b");
  }
  expect(rate.msUntil(1)).toBe(1000);
  expect(rate.msUntil(10)).toBe(10_000);
  expect(rate.msUntil(10, "a")).toBe(30_000);
  clock.now += 30_000; // and nothing since
  expect(rate.msUntil(10)).toBeWithin(19_000, 22_000);
});

test("the rate is multiplied by the number of nodes", () => {
  const clock = { now: 1_000_000 };
  const rate = new EndRate(
    () => clock.now,
    () => 3,
  );
  expect(rate.msUntil(10)).toBe(60_000);
  clock.now += 30_000;
  rate.ended("a");
  expect(rate.msUntil(6)).toBe(60_000);
});

test("within the first minute the rate is measured from the start", () => {
  const { clock, rate } = start();
  clock.now += 2000;
  rate.ended("a");
  expect(rate.msUntil(3)).toBe(6000);
});

test("without recent ends the wait is a minute, and it is never more than five", () => {
  const { clock, rate } = start();
  expect(rate.msUntil(1)).toBe(60_000);
  rate.ended("a");
  expect(rate.msUntil(1, "b")).toBe(60_000);
  clock.now += 59_999;
  expect(rate.msUntil(1000)).toBe(300_000);
  clock.now += 2;
  expect(rate.msUntil(1)).toBe(60_000);
});

test("a thousand ends per second are measured in bounded memory", () => {
  const { clock, rate } = start();
  for (let i = 0; i < 20_000; i++) {
    clock.now += 1;
    rate.ended("a");
  }
  expect(rate.msUntil(5000)).toBeWithin(4500, 5500);
});
