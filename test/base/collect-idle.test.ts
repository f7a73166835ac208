/** An idle process collects its garbage. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";

const MODULE = resolve(import.meta.dir, "../../src/base/collect-idle.ts");

/** Makes 40 MB of garbage, then idles until it is collected or the time limit ends. */
const PROGRAM = `
  import { heapSize } from "bun:jsc";
  import { collectWhenIdle } from ${JSON.stringify(MODULE)};
  const { gc } = Bun;
  let collections = 0;
  Bun.gc = (force) => (collections++, gc(force));
  collectWhenIdle(25);
  let garbage = Array.from({ length: 400_000 }, (_, i) => ({ i, text: "garbage " + i }));
  const full = heapSize();
  garbage = undefined;
  for (let i = 0; i < 1000 && collections === 0; i++) await Bun.sleep(10);
  await Bun.sleep(100);
  console.log(JSON.stringify({ collections, share: heapSize() / full }));
  process.exit(0);
`;

test("an idle process collects its garbage once", async () => {
  const child = Bun.spawn([process.execPath, "-e", PROGRAM], { stderr: "inherit" });
  const { collections, share } = JSON.parse(await new Response(child.stdout).text());
  expect(collections).toBe(1);
  expect(share).toBeLessThan(0.5);
});
