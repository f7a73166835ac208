/** The sheets of the self-test, and the answers of libraries for this machine and for others. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { libraryFolder } from "../../../src/engine/backends/host/simd-library.ts";
import { makeSheets } from "../../../src/engine/backends/selftest/sheets.ts";
import { ops } from "../../../src/engine/backends/simd/lower.ts";
import { weightsOf } from "../../../src/engine/program/describe.ts";
import { drawn } from "../../seed.ts";
import { answerOfShipped, canAnswer, featuresOf, passLibraries } from "./simd/answers.ts";
import { everyLevel } from "./simd/levels.ts";

test("the sheets of the self-test contain every step that is lowered and every block type", () => {
  const steps = makeSheets().flatMap(({ program }) => [...program.steps, ...(program.memory?.steps ?? [])]);
  expect([...new Set(steps.map(({ op }) => op as string))].toSorted()).toEqual(
    Object.entries<unknown>(ops)
      .flatMap(([op, lowered]) => (lowered === "unsupported" ? [] : [op]))
      .toSorted(),
  );
  const types = new Set(
    steps.flatMap((step) => (step.op === "linear" ? weightsOf(step) : [])).map(({ quant }) => quant),
  );
  expect([...types].map(({ name }) => name).toSorted()).toEqual(Object.keys(quants).toSorted());
});

test("sheets agree with the reference at every level that this machine has", async () => {
  for (const { name, program, options, batches } of makeSheets()) {
    const load = { ...options, precise: true, threads: 1, cacheDir: undefined };
    const sessions = await Promise.all(everyLevel.map(({ backend }) => backend.load(program, load)));
    const reference = await cpuBackend.load(program, load);
    for (const batch of batches) {
      const expected = (await reference.run(batch)).slice();
      for (const [i, session] of sessions.entries()) {
        const got = await session.run(batch);
        const far = got.findIndex(
          (value, at) => !(Math.abs(value - expected[at]!) <= 1e-5 * (1 + Math.abs(expected[at]!))),
        );
        expect(far, `${name} on ${everyLevel[i]!.level}`).toBe(-1);
      }
    }
    for (const session of [...sessions, reference]) session.close();
  }
}, 60_000);

const libraries = passLibraries();
const known = new Map(
  readFileSync(join(libraryFolder(), "KNOWN_ANSWERS"), "utf8")
    .trim()
    .split("\n")
    .map((line) => line.split(/ +/))
    .map(([answer, name, library]) => [name!, { answer, library }] as const),
);

test("every library has a known answer that was recorded from the same bytes", () => {
  expect([...known.keys()].toSorted()).toEqual(libraries.toSorted());
  for (const [name, { library }] of known) {
    const hash = new Bun.CryptoHasher("sha256").update(readFileSync(join(libraryFolder(), name))).digest("hex");
    expect(hash, `${name}: run bench/record-known-answers.ts`).toBe(library!);
  }
});

test("the libraries of one level have the same known answer on every system", () => {
  const levelOf = (name: string): string => name.replace(/^\w+-|\.\w+$/g, "");
  for (const [name, { answer }] of known)
    for (const [other, { answer: its }] of known)
      if (levelOf(name) === levelOf(other)) expect(its, other).toBe(answer!);
});

/** Libraries of one level have the same answer, and some take seconds in an emulator: the run's seed draws some. */
for (const name of drawn("answers of libraries", libraries, 2))
  test.skipIf(!canAnswer(name))(
    `${name} gives its known answer`,
    async () => expect(await answerOfShipped(name)).toBe(known.get(name)!.answer!),
    120_000,
  );

const faster = libraries.filter((name) => featuresOf(name) > 0);
for (const name of drawn("answers of libraries with more features", faster, 1))
  test.skipIf(!canAnswer(name))(
    `${name} gives its known answer with the features that it can use`,
    async () => expect(await answerOfShipped(name, featuresOf(name))).toBe(known.get(name)!.answer!),
    120_000,
  );
