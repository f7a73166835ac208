/**
 * The kernels on other processors than this machine's: WebAssembly in Bun, others under qemu if installed. A run draws
 * a part of the cases by its seed, since each is slow there: this machine's levels run all of them.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { FEATURES } from "../../../../kernels/simd/layout.ts";
import type { Backend } from "../../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { libraryFolder } from "../../../../src/engine/backends/host/simd-library.ts";
import { wasmBackend } from "../../../../src/engine/backends/host/wasm.ts";
import { missingOps } from "../../../../src/engine/backends/missing-ops.ts";
import { ops, variants } from "../../../../src/engine/backends/simd/lower.ts";
import { conformanceCases, runCase, type Case } from "../../../conformance/cases.ts";
import { rowCases } from "../../../conformance/row-cases.ts";
import { differences, expectClose, nmse } from "../compare.ts";
import { drawn } from "../../../seed.ts";
import { canEmulate, startEmulated, type Emulated } from "./hosts.ts";

const INT8_NMSE_MAX = 1e-3;

const cases = [...conformanceCases(), ...rowCases()].filter(
  ({ name, program }) => missingOps(program, { ops, variants }).length === 0 && !name.includes("longer than a pass"),
);

const references = new Map<Case, Promise<Float32Array[]>>();
/** The reference's results, computed once for all processors. */
const referenceOf = (one: Case): Promise<Float32Array[]> => {
  const known = references.get(one) ?? runCase(cpuBackend, one);
  references.set(one, known);
  return known;
};

async function compare(backend: Backend, some: readonly Case[]): Promise<void> {
  for (const one of some) {
    const expected = await referenceOf(one);
    for (const mode of [{ precise: true }, { precise: false, small: true }]) {
      const exact = await runCase(backend, one, mode);
      for (const [run, logits] of exact.entries()) expectClose(logits, expected[run]!, one.tolerance);
    }
    const rounded = await runCase(backend, one, { precise: false });
    const flat = (runs: readonly Float32Array[]): Float32Array => Float32Array.from(runs.flatMap((run) => [...run]));
    expect(nmse(flat(rounded), flat(expected)), one.name).toBeLessThan(INT8_NMSE_MAX);
  }
}

/** As many of them as one of `parts`. */
const part = (stream: string, of: readonly Case[], parts: number): Case[] =>
  drawn(stream, of, Math.ceil(of.length / parts));

const onWasm = part("WebAssembly", cases, 6);
test("WebAssembly: steps agree with the reference", async () => compare(wasmBackend, onWasm), 240_000);

const products = cases.filter(({ name }) => /^(linear|gatedMlp|moe): /.test(name));
const others = cases.filter((each) => !products.includes(each));
const some = [...part("products on arm64", products, 12), ...part("others on arm64", others, 20)];

async function expectSameBits(plain: Backend, faster: Backend): Promise<void> {
  for (const each of part("the same bits", products, 6)) {
    const expected = await runCase(plain, each, { precise: false });
    const got = await runCase(faster, each, { precise: false });
    for (const [run, logits] of got.entries()) expect(differences(logits, expected[run]!), each.name).toBe(0);
  }
}

describe.skipIf(!canEmulate("arm64"))("arm64 (qemu-aarch64, clang-19)", () => {
  let emulated: Emulated;
  beforeAll(() => void (emulated = startEmulated("arm64", join(libraryFolder(), "linux-arm64.so"))), 60_000);
  afterAll(() => emulated.stop());

  test("products and other steps agree with the reference", () => compare(emulated.backend(0), some), 240_000);

  test("I8MM gives the same bits", () => expectSameBits(emulated.backend(0), emulated.backend(FEATURES.i8mm)), 240_000);
});

describe.skipIf(!canEmulate("x64"))("x64 with AVX2 and nothing beyond (qemu-x86_64, clang-19)", () => {
  let emulated: Emulated;
  beforeAll(() => void (emulated = startEmulated("x64", join(libraryFolder(), "linux-x64-avx2.so"))), 60_000);
  afterAll(() => emulated.stop());

  test(
    "products in alternating halves of rows, as on older Intel processors, give the same bits",
    () => expectSameBits(emulated.backend(0), emulated.backend(FEATURES.halves)),
    240_000,
  );
});
