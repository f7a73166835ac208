/** Kernels read no workgroup memory that they have not written: it holds NaN here, and zeros or anything elsewhere. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import type { Poisoning } from "./poisoning.ts";
import { swiftShaderEnv } from "./swiftshader.ts";

/** One case of each kind that sums, chooses or shares through workgroup memory. */
const CASES =
  "^(linear: (q4_K|f16|3 to 5)|moe: 2 of|gatedMlp: silu$|attention: a long context, (4 heads|heads)|rmsNorm|layerNorm)";

test("with NaN in workgroup memory, every case has the reference's results", async () => {
  const child = Bun.spawn([process.execPath, resolve(import.meta.dir, "poisoning.ts"), CASES], {
    env: { ...process.env, ...(await swiftShaderEnv()) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { unwritten, changed, cases, wrong } = JSON.parse(await child.stdout.text()) as Poisoning;
  expect(unwritten).toBe("NaN"); // it is there
  expect(wrong).toEqual([]);
  expect(cases).toBeGreaterThan(8);
  expect(changed).toBeGreaterThan(15);
}, 300_000);
