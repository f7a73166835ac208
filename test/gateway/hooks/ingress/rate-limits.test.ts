import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Spent } from "../../../../src/gateway/database/peers.ts";
import { hooksSchema, type RateLimit } from "../../../../src/gateway/hooks/config.ts";
import { Refusal } from "../../../../src/gateway/hooks/ingress/problems.ts";
import { RateLimits, type NamedLimit } from "../../../../src/gateway/hooks/ingress/rate-limits.ts";
import { eventually } from "../../../e2e/hearth.ts";
import { silent } from "./fixtures.ts";

const named = (limits: readonly (RateLimit | undefined)[]): NamedLimit[] => limits.map((limit, i) => [`${i}`, limit]);

function start() {
  const clock = { now: 1_000_000 };
  const limits = new RateLimits("test", { now: () => clock.now, log: silent });
  /** Seconds to wait, or 0 for an admitted request. */
  const ask = (...asked: (RateLimit | undefined)[]): number => {
    try {
      limits.take(named(asked));
      return 0;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      expect(error.problem).toBe("rate_limited");
      return Number(error.headers["retry-after"]);
    }
  };
  return { clock, limits, ask };
}

test("a burst is admitted at once, and later requests at the rate", () => {
  const { clock, ask } = start();
  const limit = { perSecond: 2, burst: 3 };
  expect([ask(limit), ask(limit), ask(limit), ask(limit)]).toEqual([0, 0, 0, 1]);
  clock.now += 499;
  expect(ask(limit)).toBe(1);
  clock.now += 1;
  expect([ask(limit), ask(limit)]).toEqual([0, 1]);
  clock.now += 3_600_000;
  expect([ask(limit), ask(limit), ask(limit), ask(limit)]).toEqual([0, 0, 0, 1]);
});

test("perMinute: the default burst is one minute's, and Retry-After is the time until the next token", () => {
  const { ask } = start();
  const limit = { perMinute: 2 };
  expect([ask(limit), ask(limit), ask(limit)]).toEqual([0, 0, 30]);
  const rare = { perMinute: 0.5 };
  expect([ask(rare), ask(rare)]).toEqual([0, 120]);
});

test("the tightest of several limits decides, and a refused request takes no token", () => {
  const { clock, limits, ask } = start();
  const all = { perSecond: 10, burst: 10 };
  const own = { perSecond: 1, burst: 1 };
  expect(limits.take(named([own, all]))["ratelimit-limit"]).toBe("1");
  for (let i = 0; i < 20; i++) expect(ask(own, all)).toBe(1);
  expect(limits.take(named([all, undefined]))).toEqual({
    "ratelimit-policy": "10;w=1;burst=10",
    "ratelimit-limit": "10",
    "ratelimit-remaining": "8",
    "ratelimit-reset": "1",
  });
  clock.now -= 60_000; // setting the clock back neither adds nor removes tokens
  expect(ask(own)).toBe(1);
});

test("after the clock was set back, tokens are added at the rate", () => {
  const { clock, ask } = start();
  const limit = { perSecond: 1, burst: 1 };
  expect([ask(limit), ask(limit)]).toEqual([0, 1]);
  clock.now -= 3_600_000;
  expect(ask(limit)).toBe(1);
  clock.now += 1000;
  expect([ask(limit), ask(limit)]).toEqual([0, 1]);
});

test("nodes share the tokens, and an early excess reduces later ones", async () => {
  const clock = { now: 1_000_000 };
  const shared = { tokens: 10, refused: 0, reports: 0, isAway: true };
  const spend = async (spent: readonly Spent[]): Promise<number[]> => {
    if (shared.isAway) throw new Error(`no database for the ${++shared.refused}th time`);
    shared.reports++;
    return spent.map(({ taken }) => (shared.tokens -= taken));
  };
  const nodes = [1, 2, 3].map(() => new RateLimits("test", { now: () => clock.now, log: silent, spend }));
  const limit: NamedLimit = ["all", { perSecond: 10 }];
  const passed = (): number => nodes.reduce((sum, node) => sum + passedBy(node), 0);
  const passedBy = (node: RateLimits): number => {
    for (let n = 0; ; n++) {
      try {
        node.take([limit]);
      } catch {
        return n;
      }
    }
  };
  expect(passed()).toBe(30); // the nodes did not know of each other
  expect(await eventually(() => shared.refused >= 3, 30_000)).toBe(true);
  shared.isAway = false; // the failed report is repeated now
  expect(await eventually(() => shared.reports === 3, 30_000)).toBe(true);
  expect(shared.tokens).toBe(-20);
  clock.now += 1000;
  shared.tokens += 10;
  expect(passed()).toBe(10); // the first got the answer 0 left, the others a negative number
});

test("at any times, no more requests are admitted than burst and rate allow", () => {
  const gaps = fc.array(fc.nat(3000), { maxLength: 200 });
  const limit = fc.record({ perSecond: fc.integer({ min: 1, max: 20 }), burst: fc.integer({ min: 1, max: 20 }) });
  const holds = fc.property(limit, gaps, (each, waits) => {
    const { clock, ask } = start();
    const from = clock.now;
    let passed = 0;
    for (const wait of waits) {
      clock.now += wait;
      if (ask(each) === 0) passed++;
    }
    expect(passed).toBeLessThanOrEqual(each.burst + ((clock.now - from) / 1000) * each.perSecond + 1e-6);
    clock.now += 1000;
    expect(ask(each)).toBe(0);
  });
  fc.assert(holds, { numRuns: 200 });
});

test.each([[{}], [{ perSecond: 1, perMinute: 1 }], [{ perSecond: 0 }], [{ perSecond: 1, burst: 0 }]])(
  "hooks.rateLimit: %j is refused",
  (rateLimit) => {
    expect(hooksSchema.safeParse({ rateLimit }).success).toBe(false);
    expect(hooksSchema.safeParse({ mappings: [{ rateLimit }] }).success).toBe(false);
  },
);
