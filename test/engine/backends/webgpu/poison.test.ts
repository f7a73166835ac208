/** Kernels read no workgroup memory before they write it: here it holds NaN, elsewhere zeros or anything. */
import { expect, test } from "bun:test";
import { alter } from "./altered.ts";
import { choiceOfRun } from "./chosen-cases.ts";

/** One case of each kind that sums, chooses or shares through workgroup memory. */
const CASES =
  "^(linear: (q4_K|f16|3 to 5)|moe: 2 of|gatedMlp: silu$|attention: a long context, (4 heads|heads)|rmsNorm|layerNorm)";

test("with NaN in workgroup memory, every case has the reference's results", async () => {
  const isAll = choiceOfRun() === "all";
  const { unwritten, changed, cases, wrong } = await alter(
    isAll ? { choice: "all" } : { choice: "kernels", names: CASES },
  );
  expect(unwritten).toBe("NaN"); // it is there
  expect(wrong).toEqual([]);
  expect(cases).toBeGreaterThan(8);
  expect(changed).toBeGreaterThan(15);
}, 1_800_000);
