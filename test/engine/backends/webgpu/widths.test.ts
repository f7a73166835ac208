/** Sums by subgroups of every width that devices have, whatever the width of the adapter here. */
import { expect, test } from "bun:test";
import { PLAIN } from "../../../../src/base/index.ts";
import { kernelSource } from "../../../../kernels/wgsl/sources.ts";
import { drawn } from "../../../seed.ts";
import { alter } from "./altered.ts";
import { choiceOfRun } from "./chosen-cases.ts";
import { forcedWidth, WIDTHS } from "./forced-width.ts";

const isAll = choiceOfRun() === "all";
const widths = isAll ? [...WIDTHS] : drawn("widths of subgroups", [...WIDTHS], 1);
/** Cases of each kind of sum; kernels for other shapes add by the same snippet. */
const FEW = "^(linear: (3 to 5|q8_0)|gatedMlp: silu$|moe: 2 of 4)";

test.each(widths)(
  "subgroups of %i threads: the cases that add by them have the reference's results",
  async (width) => {
    const { changed, cases, wrong } = await alter({ choice: "subgroups", width, ...(isAll ? {} : { names: FEW }) });
    expect(wrong).toEqual([]);
    expect(cases).toBeGreaterThan(2);
    expect(changed).toBeGreaterThan(2);
  },
  600_000,
);

test("a kernel that uses subgroups in a way that no test forces is an error", () => {
  const source = kernelSource("linear", ["q8_0"], { subgroups: true, tuning: PLAIN });
  expect(forcedWidth(source, 32)).not.toBe(source);
  expect(() => forcedWidth(source.replace("subgroupElect()", "subgroupAny(true)"), 32)).toThrow(
    "a kernel uses 'subgroupAny(', whose width no test forces",
  );
});
