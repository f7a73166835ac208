/** Servers that are killed, or crashed by a turn, several in sequence, on a clock that the test moves. */
import { expect, test } from "bun:test";
import { execute, type Transaction } from "../../../../../src/gateway/database/store.ts";
import { alone } from "../../../../../src/gateway/database/peers.ts";
import { claimTurns, nextTurnAt } from "../../../../../src/gateway/hooks/queue/deliveries/claims.ts";
import { findRun, moveRun } from "../../../../../src/gateway/hooks/queue/deliveries/runs.ts";
import {
  dismissWorker,
  LEASE_MS,
  recover,
  registerWorker,
} from "../../../../../src/gateway/hooks/queue/worker/crashes.ts";
import { testRng } from "../../../../seed.ts";
import { postgresUrl } from "../../../../stores.ts";
import { agent, makeBench, request, type Bench } from "../deliveries/fixtures.ts";
import { makeParts, partMigrations } from "./parts.ts";

const STEP_MS = 100;
const MAX_ATTEMPTS = 5;
const AT_ONCE = 4;
const HOUR_MS = 3_600_000;

/** A turn: its duration, and the time after which it crashes its server, if it does. */
interface Job {
  readonly needsMs: number;
  readonly killsAfterMs?: number;
}

class Servers {
  readonly #bench: Bench;
  readonly #ports;
  readonly #jobs = new Map<string, Job>();
  #begun = new Map<string, number>();
  #lives = 0;

  constructor(bench: Bench) {
    this.#bench = bench;
    this.#ports = makeParts(bench.store).ports;
  }

  async add(job: Job): Promise<string> {
    const { deliveries, clock } = this.#bench;
    const accepted = await deliveries.accept(request({ now: clock.now, actions: [agent("x")] }));
    const runId = "runIds" in accepted ? accepted.runIds[0]! : "";
    this.#jobs.set(runId, job);
    return runId;
  }

  async state(runId: string): Promise<string> {
    return (await this.#bench.deliveries.run(runId))!.state;
  }

  states(runIds: Iterable<string>): Promise<string[]> {
    return Promise.all([...runIds].map((runId) => this.state(runId)));
  }

  async #isIdle(): Promise<boolean> {
    const states = await this.states(this.#jobs.keys());
    return !states.includes("queued") && !states.includes("running");
  }

  /** Runs one server for this long, then kills it; false if a turn crashed it before. */
  live(ms: number): Promise<boolean> {
    return this.#bench.store.write(() => this.#live(ms));
  }

  *#live(ms: number): Transaction<boolean> {
    const { clock } = this.#bench;
    const owner = yield* this.#start();
    const end = clock.now + Math.ceil(ms);
    while (clock.now < end) {
      if (!(yield* this.#step(owner))) return false;
      clock.now = Math.min(end, yield* this.#nextStep(end));
    }
    return true;
  }

  /** The next times to look: a step before the next possible change, then at it. */
  *#nextStep(end: number): Transaction<number> {
    const { now } = this.#bench.clock;
    const dueAt = (yield* nextTurnAt(now)) ?? end;
    if (this.#begun.size === 0) return dueAt;
    const ends = [...this.#begun].map(([runId, at]) => {
      const { needsMs, killsAfterMs = Infinity } = this.#jobs.get(runId)!;
      return at + Math.min(needsMs, killsAfterMs);
    });
    const steps = Math.ceil((Math.min(end, dueAt, ...ends) - now) / STEP_MS);
    return now + STEP_MS * Math.max(1, steps - 1);
  }

  /** Runs servers without killing them, until every run is over; throws after too many. */
  async finish(livesMax: number): Promise<void> {
    for (let life = 0; !(await this.#isIdle()); life++) {
      if (life === livesMax) throw new Error(`after ${livesMax} servers something still waits`);
      if (await this.live(HOUR_MS)) await this.stop();
    }
  }

  /** Stops the last server cleanly; its turns return to the queue. */
  async stop(): Promise<void> {
    await this.#bench.store.write(() => this.#stop());
  }

  *#stop(): Transaction<void> {
    for (const runId of this.#begun.keys()) {
      yield* moveRun((yield* findRun(runId))!, "release", this.#bench.clock.now);
    }
    yield* dismissWorker(this.#owner);
  }

  get #owner(): string {
    return `life/${this.#lives}/1/x`;
  }

  *#start(): Transaction<string> {
    this.#lives++;
    this.#begun = new Map();
    yield* recover({
      peers: { ...alone(), me: this.#owner },
      hasSurvived: false,
      turns: { holds: () => true, hasBegun: () => true },
      maxAttempts: MAX_ATTEMPTS,
      context: { ports: this.#ports, now: this.#bench.clock.now },
    });
    yield* registerWorker(this.#owner, this.#lives);
    return this.#owner;
  }

  /** False: a turn crashed the server. */
  *#step(owner: string): Transaction<boolean> {
    const { now } = this.#bench.clock;
    for (const [runId, at] of this.#begun) {
      const { needsMs, killsAfterMs = Infinity } = this.#jobs.get(runId)!;
      if (now - at >= killsAfterMs) return false;
      yield* execute("UPDATE runs SET lease_until = $1 WHERE id = $2", now + LEASE_MS, runId);
      if (now - at < needsMs) continue;
      this.#begun.delete(runId);
      yield* moveRun((yield* findRun(runId))!, "succeed", now);
    }
    const lease = { owner, now, leaseUntil: now + LEASE_MS };
    const claimed = yield* claimTurns({ ...lease, free: AT_ONCE - this.#begun.size, limitOf: () => undefined });
    for (const { id } of claimed) this.#begun.set(id, now);
    return true;
  }
}

test("a run that was alone in the first of ten quick kills still runs afterwards", async () => {
  await using bench = makeBench({ more: partMigrations });
  const servers = new Servers(bench);
  const runId = await servers.add({ needsMs: 20_000 });
  for (let kill = 0; kill < 10; kill++) await servers.live(700);
  expect(await servers.state(runId)).toBe("queued");
  await servers.finish(1);
  expect(await servers.state(runId)).toBe("succeeded");
});

test("a long run that is killed again and again is not dead if kills come without it too", async () => {
  await using bench = makeBench({ more: partMigrations });
  const servers = new Servers(bench);
  const runId = await servers.add({ needsMs: 100_000 });
  for (let kill = 0; kill < 80; kill++) await servers.live(20_000);
  expect((await bench.store.read(() => findRun(runId)))!.crashes).toBeGreaterThan(2 * MAX_ATTEMPTS);
  await servers.finish(1);
  expect(await servers.state(runId)).toBe("succeeded");
}, 60_000);

test("runs that always run together when the server is killed all succeed in the end", async () => {
  await using bench = makeBench({ more: partMigrations });
  const servers = new Servers(bench);
  const runIds = [];
  for (let i = 0; i < 3; i++) runIds.push(await servers.add({ needsMs: 2000 }));
  for (let kill = 0; kill < 40; kill++) await servers.live(1000);
  await servers.finish(1);
  expect(await servers.states(runIds)).toEqual(["succeeded", "succeeded", "succeeded"]);
});

test("a run that crashes its server each time is dead after the maximum number of attempts", async () => {
  await using bench = makeBench({ more: partMigrations });
  const servers = new Servers(bench);
  const runId = await servers.add({ needsMs: 20_000, killsAfterMs: 300 });
  await servers.finish(MAX_ATTEMPTS + 1);
  const { state, attempts, reason } = (await bench.deliveries.run(runId))!;
  expect({ state, attempts }).toEqual({ state: "dead", attempts: MAX_ATTEMPTS });
  expect(reason).toBe(
    "the server ended 5 times while only this turn ran, and at no other time: it counts as the cause",
  );
});

test("a run that crashes its server is found among others, which succeed", async () => {
  await using bench = makeBench({ more: partMigrations });
  const servers = new Servers(bench);
  const others = [];
  for (let i = 0; i < 3; i++) others.push(await servers.add({ needsMs: 5000 }));
  const cause = await servers.add({ needsMs: 20_000, killsAfterMs: 300 });
  for (let i = 0; i < 6; i++) others.push(await servers.add({ needsMs: 5000 }));
  await servers.finish(MAX_ATTEMPTS + 3);
  // the first two crashes could have any cause
  expect(await bench.deliveries.run(cause)).toMatchObject({ state: "dead", attempts: MAX_ATTEMPTS + 2 });
  expect([...new Set(await servers.states(others))]).toEqual(["succeeded"]);
});

test("several runs that crash their server all become dead", async () => {
  await using bench = makeBench({ more: partMigrations });
  const servers = new Servers(bench);
  const causes = [];
  for (const killsAfterMs of [300, 2000, 15_000]) causes.push(await servers.add({ needsMs: 20_000, killsAfterMs }));
  const other = await servers.add({ needsMs: 5000 });
  await servers.finish(3 * MAX_ATTEMPTS + 3);
  expect(await servers.states(causes)).toEqual(["dead", "dead", "dead"]);
  expect(await servers.state(other)).toBe("succeeded");
});

test("the first crash delays a long run by a second, and the next one by four times its running time", async () => {
  await using bench = makeBench({ more: partMigrations });
  const servers = new Servers(bench);
  const runId = await servers.add({ needsMs: 600_000 });
  const pauseMs = async (): Promise<number> => {
    await servers.live(100_000);
    const crashedAt = bench.clock.now;
    await servers.live(1); // the server notices the crash
    await servers.stop();
    return (await bench.store.read(() => findRun(runId)))!.nextAt - crashedAt;
  };
  expect(await pauseMs()).toBe(1000);
  bench.clock.now += 1000;
  expect(await pauseMs()).toBeWithin(380_000, 400_001);
}, 30_000);

test("a clean shutdown does not count as a crash", async () => {
  await using bench = makeBench({ more: partMigrations });
  const servers = new Servers(bench);
  const runId = await servers.add({ needsMs: 20_000 });
  for (let stop = 0; stop < 10; stop++) {
    await servers.live(700);
    await servers.stop();
  }
  const { crashes, suspected } = (await bench.store.read(() => findRun(runId)))!;
  expect({ crashes, suspected }).toEqual({ crashes: 0, suspected: 0 });
});

test("kills at random moments make no run dead", async () => {
  await using bench = makeBench({ more: partMigrations });
  const servers = new Servers(bench);
  const rng = testRng("kills at random moments");
  const runIds = [];
  for (let kill = 0; kill < (postgresUrl === undefined ? 400 : 40); kill++) {
    if (kill % 2 === 0) runIds.push(await servers.add({ needsMs: 500 + rng.float() * 4000 }));
    await servers.live(-Math.log(1 - rng.float()) * 8000);
  }
  await servers.finish(1);
  expect(await servers.states(runIds)).not.toContain("dead");
}, 60_000);
