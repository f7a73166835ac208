/** Sources that devices may get, each in some run, pass the compiler's front end, whatever drivers this machine has. */
import { expect, test } from "bun:test";
import { LOADS16 } from "../../../../kernels/wgsl/loads16.ts";
import { DEQUANTIZERS } from "../../../../kernels/wgsl/sources.ts";
import { everySource, someSources } from "./compile.ts";

async function compile(...args: string[]): Promise<{ compiled: number; found: string[] }> {
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/compile.ts`, ...args], {
    env: { ...process.env }, // with the seed of this run
    stderr: "inherit",
  });
  const text = await child.stdout.text();
  expect(await child.exited).toBe(0);
  return JSON.parse(text);
}

test("kernels compile for block types and in variants that the run draws", async () => {
  const { compiled, found } = await compile();
  expect(found).toEqual([]);
  expect(compiled).toBe(someSources().size);
}, 120_000);

test("the compiler refuses a wrong source", async () => {
  const { found } = await compile("broken");
  expect(found).toEqual([expect.stringMatching(/^broken: .*cannot convert/s)]);
}, 120_000);

test("each block type has matrix kernels of its own in every variant for that type", () => {
  const names = [...everySource().keys()];
  for (const quant of Object.keys(DEQUANTIZERS)) {
    const own = [`linear ${quant}`, `linear ${quant} subgroups`, `matmul ${quant}`, `matmul ${quant} f16`];
    expect(names).toEqual(expect.arrayContaining(own));
    expect(names.includes(`linear ${quant} packed`)).toBe(Object.hasOwn(LOADS16, quant));
  }
  expect(names).toContain("linear_3 q4_K q4_K q4_K all");
});
