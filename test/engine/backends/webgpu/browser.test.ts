/**
 * The backend and its kernels in a page of a headless browser, against the reference. Skipped, by name, if the browser
 * of the development dependencies cannot start.
 */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { conformanceCases, runCase, type Case } from "../../../conformance/cases.ts";
import { rowCases } from "../../../conformance/row-cases.ts";
import { browserRefusal, sayingsOf } from "../../../page/engine/chromium.ts";
import { drawn } from "../../../seed.ts";
import { expectClose } from "../compare.ts";
import { runnableCases } from "./chosen-cases.ts";
import { ROUTES, type PageAnswer, type PageWork } from "./page.ts";

/** Ops whose kernels a run compiles in the page. */
const OPS = 10;

/** The first and the last case of drawn ops: a page must show that it works; conformance.test.ts checks all kernels. */
function chosenCases(): Case[] {
  const byOp = Map.groupBy(runnableCases(), ({ name }) => name.split(":")[0]);
  const some = drawn("ops in a page", [...byOp.values()], OPS);
  return [...new Set(some.flatMap((cases) => [cases[0]!, cases.at(-1)!]))]; // a group has at least one
}

/** Opens a page that runs the cases; yields its messages until it is done. */
async function answersOfPage(names: readonly string[]): Promise<PageAnswer[]> {
  const built = await Bun.build({
    entrypoints: [join(import.meta.dir, "page.ts")],
    target: "browser",
  });
  const script = await built.outputs[0]!.text(); // a failed build throws
  const all = [...conformanceCases(), ...rowCases()];
  const memories = all.flatMap(({ batches }) => batches.flat().flatMap(({ memory }) => memory?.id ?? []));
  const drawing = [...all.map((each) => each.name), ...memories];
  const seeds = Object.fromEntries(drawing.map((each) => [each, Bun.hash.crc32(each)]));
  return sayingsOf<PageAnswer>({
    script,
    serve: ({ url }) =>
      new URL(url).pathname === ROUTES.cases ? Response.json({ names, seeds } satisfies PageWork) : undefined,
  });
}

const refusal = await browserRefusal();
const name = "in a page of a headless browser the kernels agree with the reference";

test.skipIf(refusal !== undefined)(
  refusal === undefined ? name : `${name} (${refusal})`,
  async () => {
    const cases = chosenCases();
    expect(cases.length).toBeGreaterThanOrEqual(OPS);
    const answers = await answersOfPage(cases.map((each) => each.name));
    const byName = new Map(answers.map((answer) => ["name" in answer ? answer.name : "", answer]));
    for (const each of cases) {
      const answer = byName.get(each.name);
      const runs = answer && "logits" in answer ? answer.logits : [];
      const expected = await runCase(cpuBackend, each);
      expect(runs.length).toBe(expected.length);
      for (const [i, logits] of runs.entries()) expectClose(Float32Array.from(logits), expected[i]!, each.tolerance);
    }
  },
  120_000,
);
