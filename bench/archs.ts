/**
 * Every reference model on every backend that claims it: its answer against llama.cpp's, in chunks and single tokens
 * against one batch, and again from a snapshot. Exits with 1 where a bound does not hold.
 *
 *   bun bench/archs.ts [--backends cpu,simd,simd8,onnx,onnx8,webgpu] [--only PATTERN] [FOLDER]
 *
 * FOLDER is one of more models, like golden/archs. A name that ends in 8 is a backend with 8-bit activations.
 */
import { parseArgs } from "node:util";
import { archs, loadProgram } from "../src/arch/index.ts";
import type { Backend, Program, Rows, Session } from "../src/backend/backend.ts";
import { cpuBackend } from "../src/backend/cpu.ts";
import { makeSimdBackend } from "../src/backend/host/simd.ts";
import { webGpuBackend } from "../src/backend/host/webgpu.ts";
import { onnxBackend } from "../src/backend/onnx/index.ts";
import { startOnnx, startWebGpu, type BackendChild } from "../test/backend/child.ts";
import { nmse } from "../test/backend/compare.ts";
import { swiftShaderEnv } from "../test/backend/webgpu/swiftshader.ts";
import { answerOn, isRanker, openReference, REFUSED, referencesWith, type Reference } from "../test/arch/references.ts";

/** What an answer may differ by: in float32 and with 8-bit activations; `exact` models have bounds of their own. */
const BOUNDS = { reference: 1e-5, precise: 1e-4, rounded: 1e-2 };
/** Of an answer in parts: sums in another order. */
const PARTS_NMSE_MAX = { precise: 1e-9, rounded: 1e-2 };

interface Kind {
  readonly backend: Backend;
  readonly precise: boolean;
  readonly bound: number;
  missing(program: Program): readonly string[];
}

const { values, positionals } = parseArgs({
  options: { backends: { type: "string", default: "cpu,simd,simd8,onnx,onnx8" }, only: { type: "string" } },
  allowPositionals: true,
});
const children: BackendChild[] = [];
const only = values.only === undefined ? undefined : new RegExp(values.only);
let failed = 0;
for (const name of values.backends.split(",")) {
  const kind = await kindOf(name);
  const counts = { good: 0, lacking: 0, bad: 0, worst: 0, worstName: "" };
  for (const reference of referencesWith(positionals[0])) {
    if (only && !only.test(reference.name)) continue;
    const found = await check(reference, kind);
    if (found === undefined) continue;
    if (found === "lacking") counts.lacking++;
    else if (typeof found === "string") {
      counts.bad++;
      console.log(`${name} · ${reference.name}: ${found}`);
    } else {
      counts.good++;
      if (reference.nmseMax <= kind.bound && found > counts.worst)
        Object.assign(counts, { worst: found, worstName: reference.name });
    }
  }
  failed += counts.bad;
  const { good, lacking, bad, worst, worstName } = counts;
  const most = `the largest NMSE is ${worst.toExponential(1)}, of ${worstName}`;
  console.log(`${name}: ${good} models within bounds, ${bad} not, ${lacking} not claimed; ${most}`);
}
for (const child of children) await child.stop();
process.exit(failed > 0 ? 1 : 0);

async function kindOf(name: string): Promise<Kind> {
  const rounded = name.endsWith("8");
  const precise = !rounded;
  const bound = rounded ? BOUNDS.rounded : BOUNDS.precise;
  const claims = (backend: Backend) => (program: Program) => backend.missing?.(program) ?? [];
  switch (rounded ? name.slice(0, -1) : name) {
    case "cpu":
      return { backend: cpuBackend, precise: true, bound: BOUNDS.reference, missing: () => [] };
    case "simd": {
      const backend = makeSimdBackend();
      return { backend, precise, bound, missing: claims(backend) };
    }
    case "onnx": {
      const child = startOnnx();
      children.push(child);
      return { backend: child.backend, precise, bound, missing: claims(onnxBackend) };
    }
    case "webgpu": {
      const child = startWebGpu(await swiftShaderEnv());
      children.push(child);
      return { backend: child.backend, precise, bound, missing: claims(webGpuBackend) };
    }
    default:
      throw new Error(`--backends: expected cpu, simd, simd8, onnx, onnx8 or webgpu, got '${name}'`);
  }
}

/** The error of a model that holds, what is wrong with one that does not; nothing where it is none of ours. */
async function check(reference: Reference, kind: Kind): Promise<number | string | undefined> {
  const opened = openReference(reference);
  const { model, arch } = opened;
  try {
    if (isRanker(model, arch) || !Object.hasOwn(archs, arch) || REFUSED[reference.name] !== undefined) return undefined;
    const program = loadProgram(model);
    if (kind.missing(program).length > 0) return "lacking";
    const { got, expected } = await answerOn(kind, reference, opened);
    const error = nmse(got, expected);
    // Experts that llama.cpp itself rounds have a bound of their own.
    const bound = Math.max(kind.bound, reference.nmseMax);
    if (!(error < bound)) return `NMSE ${error.toExponential(1)}, expected less than ${bound}`;
    return (program.logits && (await wrongInParts(program, reference, kind))) || error;
  } catch (error) {
    return (error as Error).message;
  } finally {
    model.close();
  }
}

/** What is wrong with answers in parts, or after a snapshot. */
async function wrongInParts(
  program: Program,
  { tokens }: Reference,
  { backend, precise }: Kind,
): Promise<string | undefined> {
  const session = await backend.load(program, { ctxLen: 64, slots: 2, precise, threads: 1, cacheDir: undefined });
  try {
    const run = async (slot: number, start: number, end: number): Promise<Float32Array> =>
      (await session.run([rowsOf(slot, tokens.subarray(start, end), start)])).slice();
    const whole = await run(0, 0, tokens.length);
    const parts: number[] = [];
    const cuts = [0, 5, 13, ...Array.from({ length: tokens.length - 16 }, (_, i) => 17 + i)];
    for (const [i, start] of cuts.slice(0, -1).entries()) parts.push(...(await run(1, start, cuts[i + 1]!)));
    const error = nmse(Float32Array.from(parts), whole);
    if (!(error < PARTS_NMSE_MAX[precise ? "precise" : "rounded"])) return `in parts: NMSE ${error.toExponential(1)}`;
    return await wrongFromSnapshot(session, run, tokens.length);
  } finally {
    session.close();
  }
}

function rowsOf(slot: number, tokens: Int32Array, start: number): Rows {
  return { slot, start, tokens, logits: "all" };
}

/** A slot taken back, in itself and in another slot: what follows must have the bits of the first time. */
async function wrongFromSnapshot(
  session: Session,
  run: (slot: number, start: number, end: number) => Promise<Float32Array>,
  end: number,
): Promise<string | undefined> {
  const at = 16;
  await run(0, 0, at);
  const checkpoint = session.checkpoints?.save(0, at);
  const block = session.blocks && { first: 0, count: at, bytes: session.blocks.read(0, 0, at) };
  const packed = checkpoint && session.blocks?.checkpoints?.pack(checkpoint);
  const first = await run(0, at, end);
  if (checkpoint) session.checkpoints!.restore(0, checkpoint);
  if (!isSame(await run(0, at, end), first)) return "from a snapshot: other bits in the same slot";
  await run(1, 0, 3);
  session.copy({ from: 0, to: 1, length: at });
  if (checkpoint) session.checkpoints!.restore(1, checkpoint);
  if (!isSame(await run(1, at, end), first)) return "from a snapshot: other bits in a slot that it was copied to";
  if (!block) return undefined;
  await run(1, 0, 7);
  session.blocks!.write(1, block);
  if (packed) session.checkpoints!.restore(1, session.blocks!.checkpoints!.unpack(at, packed)!);
  return isSame(await run(1, at, end), first) ? undefined : "from a snapshot: other bits from its bytes";
}

function isSame(a: Float32Array, b: Float32Array): boolean {
  return a.length === b.length && a.every((value, i) => value === b[i]);
}
