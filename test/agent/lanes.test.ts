import { describe, expect, test } from "bun:test";
import { Lanes } from "../../src/agent/lanes.ts";
import { NEVER } from "./parts.ts";

interface Job {
  readonly name: string;
  readonly done: Promise<unknown>;
  finish(): void;
}

function lanesOf(max: number) {
  const lanes = new Lanes(() => max);
  const started: string[] = [];
  const job = (name: string, key: string, options: { isExempt?: boolean; signal?: AbortSignal } = {}): Job => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = lanes.run({ key, isExempt: options.isExempt ?? false, signal: options.signal ?? NEVER }, () => {
      started.push(name);
      return promise;
    });
    return { name, done, finish: resolve };
  };
  return { lanes, started, job };
}

/** Everything that can begin has begun: no timer is part of it. */
const settle = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await Promise.resolve();
};

describe("lanes", () => {
  test("run one turn of a session at a time, in order, and others beside it", async () => {
    const { job, started } = lanesOf(9);
    const [a1, a2, b1] = [job("a1", "a"), job("a2", "a"), job("b1", "b")];
    await settle();
    expect(started).toEqual(["a1", "b1"]);
    a1.finish();
    await a1.done;
    await settle();
    expect(started).toEqual(["a1", "b1", "a2"]);
    a2.finish();
    b1.finish();
    await Promise.all([a2.done, b1.done]);
  });

  test("run so many at once, the main session's beside them", async () => {
    const { job, started, lanes } = lanesOf(2);
    const jobs = ["a", "b", "c"].map((key) => job(key, key));
    const main = job("main", "main", { isExempt: true });
    await settle();
    expect([started, lanes.running]).toEqual([["a", "b", "main"], 3]);
    main.finish();
    await main.done;
    await settle();
    expect(started).toEqual(["a", "b", "main"]); // its place is nobody else's
    jobs[1]!.finish();
    await jobs[1]!.done;
    await settle();
    expect(started).toEqual(["a", "b", "main", "c"]);
    for (const each of jobs) each.finish();
    await Promise.all(jobs.map(({ done }) => done));
    expect(lanes.running).toBe(0);
  });

  test("let a failure through, and go on", async () => {
    const { lanes } = lanesOf(1);
    const options = { key: "a", isExempt: false, signal: NEVER };
    await expect(lanes.run(options, () => Promise.reject(new Error("mine")))).rejects.toThrow("mine");
    expect(await lanes.run(options, async () => "next")).toBe("next");
  });

  test("forget who is cancelled while it waits", async () => {
    const { job, started } = lanesOf(1);
    const first = job("first", "a");
    const gone = new AbortController();
    const second = job("second", "a", { signal: gone.signal });
    const third = job("third", "a");
    await settle();
    gone.abort();
    await expect(second.done).rejects.toThrow("cancelled before it began");
    first.finish();
    await first.done;
    await settle();
    expect(started).toEqual(["first", "third"]);
    third.finish();
    await third.done;
  });

  test("keep the order of a hundred turns of ten sessions", async () => {
    const { lanes } = lanesOf(4);
    const order: string[] = [];
    let most = 0;
    const all = Array.from({ length: 100 }, (_, i) =>
      lanes.run({ key: `s${i % 10}`, isExempt: false, signal: NEVER }, async () => {
        most = Math.max(most, lanes.running);
        await Bun.sleep(i % 3);
        order.push(`s${i % 10}:${i}`);
      }),
    );
    await Promise.all(all);
    expect(most).toBe(4);
    for (let key = 0; key < 10; key++) {
      const own = order.filter((each) => each.startsWith(`s${key}:`)).map((each) => Number(each.split(":")[1]));
      expect(own).toEqual(own.toSorted((a, b) => a - b));
    }
  });
});
