/** A load and a decode step, watched from inside the process with the device. */
import { beforeAll, expect, test } from "bun:test";
import { resolve } from "node:path";
import type { Inside } from "./inside.ts";
import { swiftShaderEnv } from "./swiftshader.ts";

const MODEL = resolve(import.meta.dir, "../../../../models/hearth/hearth.gguf");

let inside: Inside;
beforeAll(async () => {
  const child = Bun.spawn([process.execPath, resolve(import.meta.dir, "inside.ts"), MODEL], {
    env: { ...process.env, ...(await swiftShaderEnv()) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  inside = JSON.parse(await child.stdout.text());
}, 300_000);

test("all kernels of a model are compiled at once", () => {
  expect(inside.pipelines).toBeGreaterThan(15);
  expect(inside.atOnce).toBeGreaterThan(0.7 * inside.pipelines); // the others follow at the end of the load
});

test("timestamps are in nanoseconds", () => {
  expect(inside.stamps.some((rest) => rest !== 0)).toBe(true); // remainders by 65,536
});

test("a token at temperature 0 reads back its id and its logit, not all logits", () => {
  expect(inside.bytesRead).toBe(8);
});

test("a long run of an encoder is submitted in parts, between which others may run", () => {
  expect(inside.pauses).toBe(2);
  expect(inside.difference).toBeLessThan(1e-5);
});
