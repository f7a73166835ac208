/** Device memory of a load, during it and after it was cancelled. */
import { beforeAll, expect, test } from "bun:test";
import { resolve } from "node:path";
import { swiftShaderEnv } from "./swiftshader.ts";

const MODEL = resolve(import.meta.dir, "../../../../models/hearth/hearth.gguf");
const MATRIX_BYTES = 64 * 2 ** 20;

interface Outcome {
  readonly outcome: string;
  readonly writtenBytes: number;
  readonly alive: number;
}

let report: {
  before: number;
  after: number;
  cancelled: [Outcome, Outcome];
  whole: Outcome;
  disk: { asked: number; most: number; released: number };
  bytes: { needed: number; taken: number }[];
  retried: { isLost: boolean; layers: number; all: number; logits: number };
};
beforeAll(async () => {
  const child = Bun.spawn([process.execPath, resolve(import.meta.dir, "loading.ts"), MODEL], {
    env: { ...process.env, ...(await swiftShaderEnv()) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  report = JSON.parse(await new Response(child.stdout).text());
}, 300_000);

test("a cancelled load uploads no further weights", () => {
  const [early, late] = report.cancelled;
  expect([early.outcome, late.outcome]).toEqual(["cancelled", "cancelled"]);
  expect(early.writtenBytes).toBeLessThan(1.5 * MATRIX_BYTES);
  expect(late.writtenBytes).toBeGreaterThan(3.9 * MATRIX_BYTES);
});

test("a cancelled load and a closed model leave no buffer on the device", () => {
  expect(report.cancelled.map(({ alive }) => alive)).toEqual([report.before, report.before]);
  expect(report.whole).toMatchObject({ outcome: "loaded", alive: report.before });
  expect(report.after).toBe(report.before);
});

test("an upload reads little of the file ahead, and releases each part once it is written", () => {
  const { asked, most, released } = report.disk;
  expect([asked, released]).toEqual([4 * MATRIX_BYTES, 4 * MATRIX_BYTES]); // in the order of the file
  expect(most).toBeGreaterThan(MATRIX_BYTES);
  expect(most).toBeLessThanOrEqual(2.25 * MATRIX_BYTES);
});

test("the bytes that a model needs are known before it is loaded, for any number of its layers", () => {
  expect(report.bytes.length).toBe(3); // the output; three layers and it; all
  for (const { needed, taken } of report.bytes) expect(needed).toBe(taken);
  const [output, some, all] = report.bytes.map(({ needed }) => needed);
  expect(some!).toBeGreaterThan(output!);
  expect(all!).toBeGreaterThan(some!);
});

test("a device that is lost during a load is opened again for fewer layers", () => {
  const { isLost, layers, all, logits } = report.retried;
  expect(isLost).toBe(true);
  expect(layers).toBeLessThan(all);
  expect(layers).toBeGreaterThan(1);
  expect(logits).toBeGreaterThan(1000);
});
