import { expect, test } from "bun:test";
import { hostname } from "node:os";
import { isGone, makeOwner } from "../../../src/hooks/worker/owner.ts";

test("an owner in a process that lives is not gone, not even to another worker of it", () => {
  expect(isGone(makeOwner())).toBe(false);
  expect(makeOwner()).not.toBe(makeOwner());
  expect(isGone(`${hostname()}/1/1.5/x`)).toBe(false); // the first process is there as long as the machine runs
});

test("an owner whose process has ended is gone", async () => {
  const child = Bun.spawn([process.execPath, "-e", ""]);
  await child.exited;
  expect(isGone(`${hostname()}/${child.pid}/1.5/x`)).toBe(true);
});

test("an owner with this process's number that began at another time is gone: numbers come again in containers", () => {
  expect(isGone(`${hostname()}/${process.pid}/1.5/x`)).toBe(true);
});

test.each(["", "elsewhere/99999999/1.5/x", `${hostname()}/-1/1.5/x`, `${hostname()}/x/1.5/x`])(
  "of an owner that cannot be known nothing is assumed: '%s'",
  (owner) => {
    expect(isGone(owner)).toBe(false);
  },
);
