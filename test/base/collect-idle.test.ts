/** An idle process collects its garbage. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";

const MODULE = resolve(import.meta.dir, "../../src/base/collect-idle.ts");

/** Holds 20 MB until they are collected for the first time, then idles for several more checks. */
const PROGRAM = `
  import { heapSize } from "bun:jsc";
  import { collectWhenIdle } from ${JSON.stringify(MODULE)};
  const { gc } = Bun;
  setInterval(() => {}, 60_000); // keeps it alive
  const collected = Promise.withResolvers();
  let collections = 0;
  let garbage = Array.from({ length: 400_000 }, (_, i) => ({ i, text: "garbage " + i }));
  const full = heapSize();
  Bun.gc = (force) => {
    garbage = undefined; // not before: the engine may collect by itself at any time
    collections++;
    gc(force);
    collected.resolve();
  };
  collectWhenIdle(100);
  await collected.promise;
  await Bun.sleep(500);
  console.log(JSON.stringify({ collections, share: heapSize() / full }));
  process.exit(0);
`;

test("an idle process collects its garbage once", async () => {
  const child = Bun.spawn([process.execPath, "-e", PROGRAM], { stderr: "inherit" });
  const { collections, share } = JSON.parse(await new Response(child.stdout).text());
  expect(collections).toBe(1);
  expect(share).toBeLessThan(0.5);
});
