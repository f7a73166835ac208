import { expect, test } from "bun:test";
import { inTime } from "../../src/base/index.ts";

const never = new Promise<never>(() => {});

test("a promise that settles in time gives its result or its error, and `late` is not called", async () => {
  let isLate = false;
  const late = (): void => void (isLate = true);
  expect(await inTime(Promise.resolve(7), { ms: 5, late })).toBe(7);
  await expect(inTime(Promise.reject(new Error("broken")), { ms: 5, late })).rejects.toThrow("broken");
  await Bun.sleep(20);
  expect(isLate).toBe(false);
});

test("a promise that does not settle in time gives what `late` returns or throws", async () => {
  expect(await inTime(never, { ms: 1, late: () => "late" })).toBe("late");
  const late = (): never => {
    throw new Error("too late");
  };
  await expect(inTime(never, { ms: 1, late })).rejects.toThrow("too late");
});

test("a promise that settles while the event loop is blocked beyond the limit is in time", async () => {
  const heard = Promise.withResolvers<string>();
  const data = (_: unknown, bytes: Buffer): void => heard.resolve(bytes.toString());
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data } });
  const client = await Bun.connect({ hostname: "127.0.0.1", port: server.port, socket: { data() {} } });
  const answer = inTime(heard.promise, { ms: 10, late: () => "late" });
  setTimeout(() => client.write("here"), 5);
  Bun.sleepSync(50); // both timers are due
  expect(await answer).toBe("here");
  client.end();
  server.stop(true);
});
