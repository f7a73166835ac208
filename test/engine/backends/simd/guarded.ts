/**
 * Runs every case at a level with each tensor ending at a protected page: a kernel that reads one byte after a tensor
 * kills this process. Linux only. `bun guarded.ts LEVEL`; prints the number of cases.
 */
import { dlopen, FFIType, ptr, toArrayBuffer, type Pointer } from "bun:ffi";
import { missingOps } from "../../../../src/engine/backends/missing-ops.ts";
import { makeSimdBackend } from "../../../../src/engine/backends/host/simd.ts";
import { ops, variants } from "../../../../src/engine/backends/simd/lower.ts";
import type { WeightSource } from "../../../../src/engine/program/backend.ts";
import { conformanceCases, runCase } from "../../../conformance/cases.ts";

const PAGE = 4096;
const READ_WRITE = 3;
const PRIVATE_ANONYMOUS = 0x22;

const libc = dlopen("libc.so.6", {
  mmap: { args: [FFIType.u64, FFIType.u64, FFIType.i32, FFIType.i32, FFIType.i32, FFIType.i64], returns: FFIType.ptr },
  mprotect: { args: [FFIType.u64, FFIType.u64, FFIType.i32], returns: FFIType.i32 },
}).symbols;

/** A copy of the bytes that ends at a protected page, and, if it fills whole pages, begins after one. */
function guarded(bytes: Uint8Array): Uint8Array {
  const room = Math.ceil(bytes.length / PAGE) * PAGE;
  const base = Number(libc.mmap(0n, BigInt(room + 2 * PAGE), READ_WRITE, PRIVATE_ANONYMOUS, -1, 0n));
  const whole = new Uint8Array(toArrayBuffer(base as Pointer, 0, room + 2 * PAGE));
  const copy = whole.subarray(PAGE + room - bytes.length, PAGE + room);
  copy.set(bytes);
  for (const page of [base, base + PAGE + room]) {
    if (libc.mprotect(BigInt(page), BigInt(PAGE), 0) !== 0) throw new Error("mprotect failed");
  }
  return copy;
}

function guardAll(source: WeightSource): WeightSource {
  const known = new Map<string, Uint8Array>();
  const read = (name: string): Uint8Array => {
    const tensor = known.get(name) ?? guarded(source.read(name));
    known.set(name, tensor);
    return tensor;
  };
  return { path: source.path, read };
}

const [level, broken] = process.argv.slice(2);
if (broken === "--read-behind") {
  // Proves the guard: this must kill the process.
  const tensor = guarded(new Uint8Array(100));
  const past = new Uint8Array(toArrayBuffer((ptr(tensor) + 90) as Pointer, 0, 40));
  process.stdout.write(`${past[39]}\n`);
}
const backend = makeSimdBackend({ level });
let count = 0;
for (const each of conformanceCases()) {
  if (missingOps(each.program, { ops, variants }).length > 0) continue;
  const weights = guardAll(each.program.weights);
  for (const precise of [true, false])
    await runCase(backend, { ...each, program: { ...each.program, weights } }, { precise });
  count++;
}
process.stdout.write(`${count} cases\n`);
process.exit(0);
