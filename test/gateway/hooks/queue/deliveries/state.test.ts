import { expect, test } from "bun:test";
import fc from "fast-check";
import { queryAll, type Transaction } from "../../../../../src/gateway/database/store.ts";
import { acceptDeliveries } from "../../../../../src/gateway/hooks/queue/deliveries/accept.ts";
import { openRuns } from "../../../../../src/gateway/hooks/queue/deliveries/open-runs.ts";
import { claimTurns, leasedRuns } from "../../../../../src/gateway/hooks/queue/deliveries/claims.ts";
import { dueEvents, findRun, moveRun, type Run } from "../../../../../src/gateway/hooks/queue/deliveries/runs.ts";
import {
  FINAL,
  isFinal,
  nextState,
  type Outcome,
  type RunEvent,
} from "../../../../../src/gateway/hooks/queue/deliveries/state.ts";
import { answering } from "../../../../stores.ts";
import { agent, makeBench, postsNothing, request, START, wake } from "./fixtures.ts";

const EVENTS: readonly RunEvent[] = ["claim", "release", "retry", "store", "succeed", "fail", "exhaust", "cancel"];
const LEASE_MS = 30_000;

test("a final state has no successor, and every outcome leads to a final state", () => {
  for (const state of ["succeeded", "failed", "dead", "cancelled"] as const) {
    expect(isFinal(state)).toBe(true);
    for (const event of EVENTS) expect(nextState(state, event)).toBe(undefined);
  }
  for (const outcome of Object.keys(FINAL) as Outcome[]) {
    for (const state of ["queued", "running"] as const) expect(isFinal(nextState(state, FINAL[outcome])!)).toBe(true);
  }
});

test("moveRun: an impossible event is an error and changes nothing", async () => {
  await using bench = makeBench();
  const result = await bench.deliveries.accept(request({ actions: [agent("x")] }));
  const find = () => bench.store.read(() => findRun("runIds" in result ? result.runIds[0]! : ""));
  const run = (await find())!;
  await expect(bench.store.write(() => moveRun(run, "release", START))).rejects.toThrow("cannot release");
  expect(await find()).toEqual(run);
});

type Op =
  | { readonly op: "accept"; readonly session: number; readonly isWake: boolean }
  | { readonly op: "claim"; readonly owner: string }
  | { readonly op: "end"; readonly nth: number; readonly how: "succeed" | "fail" | "retry" | "store" | "cancel" }
  | { readonly op: "post" }
  | { readonly op: "pass"; readonly ms: number }
  | { readonly op: "adopt" };

const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ op: fc.constant("accept"), session: fc.nat(2), isWake: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant("claim"), owner: fc.constantFrom("a", "b") }) },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant("end"),
      nth: fc.nat(5),
      how: fc.constantFrom("succeed", "fail", "retry", "store", "cancel"),
    }),
  },
  fc.record({ op: fc.constant("post") }),
  fc.record({ op: fc.constant("pass"), ms: fc.nat(2 * LEASE_MS) }),
  fc.record({ op: fc.constant("adopt") }),
);

/** The rows, and a model of them with only the invariants. */
class World {
  now = START;
  readonly began: { sessionKey: string; seq: number }[] = [];

  *all(where = "1 = 1"): Transaction<Run[]> {
    const runs: Run[] = [];
    for (const { id } of yield* queryAll<{ id: string }>(`SELECT id FROM runs WHERE ${where} ORDER BY seq`)) {
      runs.push((yield* findRun(id))!);
    }
    return runs;
  }

  *step(each: Op): Transaction<void> {
    const { now } = this;
    switch (each.op) {
      case "accept": {
        const action = each.isWake ? wake("x") : agent("x", { sessionKey: `s${each.session}` });
        const options = {
          maxQueued: 12,
          maxQueuedOf: () => 12,
          keysMs: 1,
          sessionKeyOf: ({ requested }: { requested?: string | undefined }) => requested!,
          msUntil: () => 1,
          posting: () => answering(postsNothing),
        };
        const room = 12 - (yield* openRuns());
        const [end] = yield* acceptDeliveries([request({ actions: [action], now })], options);
        expect(end!.accepted.kind).toBe(room > 0 ? "accepted" : "full");
        return;
      }
      case "claim": {
        const { owner } = each;
        const claimed = yield* claimTurns({ owner, now, leaseUntil: now + LEASE_MS, free: 2, limitOf: () => 2 });
        expect(claimed.length).toBeLessThanOrEqual(2);
        this.began.push(...claimed);
        return;
      }
      case "end": {
        const running = yield* this.all("state = 'running'");
        const run = running[each.nth % Math.max(1, running.length)];
        if (!run) return;
        const changes =
          each.how === "retry" ? { nextAt: now + 1000 } : each.how === "store" ? { step: "event" as const } : {};
        yield* moveRun(run, each.how, now, changes);
        return;
      }
      case "post":
        for (const run of yield* dueEvents(3)) yield* moveRun(run, "succeed", now);
        return;
      case "pass":
        this.now += each.ms;
        return;
      case "adopt":
        for (const run of yield* leasedRuns()) {
          if (run.leaseUntil! <= now) yield* moveRun(run, "release", now);
        }
        return;
      default:
        each satisfies never;
    }
  }

  *check(): Transaction<void> {
    const runs = yield* this.all();
    const open = runs.filter((run) => !isFinal(run.state));
    expect(yield* openRuns()).toBe(open.length);
    for (const run of runs) {
      // running runs, and only these, have a lease
      expect([run.state === "running", run.leaseOwner !== null, run.leaseUntil !== null]).toEqual(
        Array.from({ length: 3 }, () => run.state === "running"),
      );
      expect(run.state === "running" && run.step === "event").toBe(false);
    }
    for (const group of Map.groupBy(open, (run) => run.sessionKey).values()) {
      const turns = group.filter((run) => run.step === "turn");
      // one at a time, and none before an earlier one of its session
      expect(turns.filter((run) => run.state === "running").length).toBeLessThanOrEqual(1);
      expect(turns.slice(1).some((run) => run.state === "running")).toBe(false);
    }
  }
}

test("in any order of events, a session runs one turn at a time in order, and the count of open runs is right", async () => {
  await using bench = makeBench();
  await fc.assert(
    fc.asyncProperty(fc.array(op, { minLength: 1, maxLength: 60 }), async (ops) => {
      const undo = new Error("undo");
      const tried = bench.store.write(function* () {
        const world = new World();
        for (const each of ops) {
          yield* world.step(each);
          yield* world.check();
        }
        for (const [, begun] of Map.groupBy(world.began, (run) => run.sessionKey)) {
          const order = begun.map((run) => run.seq);
          expect(order).toEqual(order.toSorted((a, b) => a - b));
        }
        throw undo; // the next case starts with an empty database
      });
      await expect(tried).rejects.toBe(undo);
    }),
    { numRuns: 300 },
  );
}, 120_000);
