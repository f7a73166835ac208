import { expect, test } from "bun:test";
import { hostname } from "node:os";
import { isGone, makeOwner } from "../../../src/hooks/worker/owner.ts";

test("a worker of this process is not gone, nor any other in it", () => {
  expect(isGone(makeOwner())).toBe(false);
  expect(makeOwner()).not.toBe(makeOwner());
});

test.each([
  ["that has ended", `${hostname()}/99999999/1.5/x`],
  ["whose number another process has now, as in a container that began again", `${hostname()}/1/1.5/x`],
  ["whose number is ours", `${hostname()}/${process.pid}/1.5/x`],
  ["of another machine", `elsewhere/${process.pid}/1.5/x`],
  ["of an earlier version", "x"],
])("a worker of a process %s is gone: the database is ours alone", (_, owner) => {
  expect(isGone(owner)).toBe(true);
});
