/** Our samplers leave the distributions of fixed logits that llama.cpp's samplers leave. */
import { expect, test } from "bun:test";
import { CASES, distributionOf, makeSetting } from "./llama-cases.ts";
import recorded from "./llama-distributions.json" with { type: "json" };

const setting = makeSetting();
/** By case: the number of tokens that are left, and the probabilities of at least 0.002. */
const byName: Readonly<Record<string, { left: number; likely: Readonly<Record<string, number>> }>> = recorded;

test.each(CASES.map((each) => [each.name, each] as const))("%s", (name, each) => {
  const ours = distributionOf(each, setting);
  const { left, likely } = byName[name]!;
  expect(ours.size).toBe(left);
  for (const [id, p] of Object.entries(likely)) expect(Math.abs((ours.get(Number(id)) ?? 0) - p)).toBeLessThan(1e-5);
  const more = [...ours].filter(([id, p]) => p > 0.0021 && !(id in likely));
  expect(more).toEqual([]);
});
