/** Answers that wait for runs, as far as a socket cannot show it: failures of the wait. */
import { expect, test } from "bun:test";
import { AppError } from "../../../../src/base/errors.ts";
import type { Runs } from "../../../../src/gateway/hooks/ingress/ports.ts";
import { outcomes } from "../../../../src/gateway/hooks/ingress/prefer.ts";
import { Waits } from "../../../../src/gateway/hooks/ingress/waits.ts";

/** Runs that never end, except one whose news cannot be read. */
function start() {
  const watched = new Set<string>();
  const runs: Runs = {
    origin: async () => undefined,
    status: async () => undefined,
    async *watch(id, signal) {
      yield* [];
      if (id === "unreadable") throw new AppError("storage", "the database is away");
      watched.add(id);
      const { promise, resolve } = Promise.withResolvers<void>();
      signal.addEventListener("abort", () => resolve());
      if (!signal.aborted) await promise;
      watched.delete(id);
    },
  };
  return { watched, runs, waits: new Waits() };
}

const never = new AbortController().signal;

test("a database failure ends the wait and its watchers", async () => {
  const { watched, ...parts } = start();
  expect(await outcomes(parts, ["endless", "unreadable"], { gone: never, seconds: 300 })).toBeUndefined();
  expect([...watched]).toEqual([]);
});

test("a sender that disconnected before the wait began is not waited for", async () => {
  const { watched, ...parts } = start();
  const wait = outcomes(parts, ["endless"], { gone: AbortSignal.abort(), seconds: 300 });
  expect(await Promise.race([wait.then(() => "over"), Bun.sleep(5000)])).toBe("over");
  expect([...watched]).toEqual([]);
});
