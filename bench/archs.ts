/**
 * Runs every reference model on every backend that supports it, and compares its answer with llama.cpp's, chunks and
 * single tokens with one batch, tokens alone and in company, and a restored snapshot; on backends that read images also
 * all projectors: the rows of a picture, and the logits of text models after pictures. Exits with 1 if a bound is
 * exceeded.
 *
 *   bun bench/archs.ts [--backends cpu,simd,simd8,onnx,onnx8,webgpu] [--only PATTERN] [FOLDER]
 *
 * FOLDER holds further models, like golden/archs. A name that ends in 8 is a backend with 8-bit activations.
 */
import { parseArgs } from "node:util";
import { archs, loadProgram } from "../src/engine/architectures/index.ts";
import type { Backend, Program } from "../src/engine/program/backend.ts";
import { cpuBackend } from "../src/engine/backends/cpu.ts";
import { makeSimdBackend } from "../src/engine/backends/host/simd.ts";
import { webGpuBackend } from "../src/engine/backends/host/webgpu.ts";
import { onnxBackend } from "../src/engine/backends/onnx/index.ts";
import { startOnnx, startWebGpu, type BackendChild } from "../test/engine/backends/child.ts";
import { nmse } from "../test/engine/backends/compare.ts";
import { swiftShaderEnv } from "../test/engine/backends/webgpu/swiftshader.ts";
import { rowError, textErrors, TOLERANCES } from "../test/engine/vision/golden-text.ts";
import { hasGolden } from "../test/golden-root.ts";
import { wrongInParts } from "../test/engine/architectures/in-parts.ts";
import {
  answerOn,
  isRanker,
  openReference,
  REFUSED,
  referencesWith,
  type Reference,
} from "../test/engine/architectures/references.ts";

/** Largest errors: in float32 and with 8-bit activations; `exact` models have other bounds. */
const BOUNDS = { reference: 1e-5, precise: 1e-4, rounded: 1e-2 };

/** The largest error of an image's rows. */
const ROWS_BOUND = 1e-10;

interface Kind {
  readonly backend: Backend;
  readonly precise: boolean;
  readonly bound: number;
  missing(program: Program): readonly string[];
  /** True if it reads images: text models of projectors have other bounds. */
  readonly sees: boolean;
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
  if (kind.sees && hasGolden) await checkPictures(name, kind, counts);
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
      return { backend: cpuBackend, precise: true, bound: BOUNDS.reference, missing: () => [], sees: true };
    case "simd": {
      const backend = makeSimdBackend();
      return { backend, precise, bound, missing: claims(backend), sees: precise };
    }
    case "onnx": {
      const child = startOnnx();
      children.push(child);
      return { backend: child.backend, precise, bound, missing: claims(onnxBackend), sees: false };
    }
    case "webgpu": {
      const child = startWebGpu(await swiftShaderEnv());
      children.push(child);
      return { backend: child.backend, precise, bound, missing: claims(webGpuBackend), sees: precise };
    }
    default:
      throw new Error(`--backends: expected cpu, simd, simd8, onnx, onnx8 or webgpu, got '${name}'`);
  }
}

/** Checks the logits after every picture of every projector, and rows; counts each projector as a model. */
async function checkPictures(name: string, { backend }: Kind, counts: { good: number; bad: number }): Promise<void> {
  for (const [projector, { text: bound }] of Object.entries(TOLERANCES)) {
    if (only && !only.test(`vision/${projector}`)) continue;
    const errors = await textErrors(projector, backend).catch((error: Error) => new Map([[error.message, Infinity]]));
    const row = await rowError(projector, backend, "alpha").catch(() => Infinity);
    const bad = [...errors].filter(([, error]) => !(error < bound));
    if (row !== undefined && !(row < ROWS_BOUND)) bad.push(["rows of alpha", row]);
    if (bad.length === 0) counts.good++;
    else counts.bad++;
    for (const [image, error] of bad)
      console.log(
        `${name} · vision/${projector}, ${image}: NMSE ${error.toExponential(1)}, expected less than ${bound}`,
      );
  }
}

/** The error (a number) of a passing model, a text for a failing model; undefined for an unsupported one. */
async function check(reference: Reference, kind: Kind): Promise<number | string | undefined> {
  const opened = openReference(reference);
  const { model, arch } = opened;
  try {
    if (isRanker(model, arch) || !Object.hasOwn(archs, arch) || REFUSED[reference.name] !== undefined) return undefined;
    const program = loadProgram(model);
    if (kind.missing(program).length > 0) return "lacking";
    const { got, expected } = await answerOn(kind, reference, opened);
    const error = nmse(got, expected);
    // Experts that llama.cpp itself rounds have another bound.
    const bound = Math.max(kind.bound, reference.nmseMax);
    if (!(error < bound)) return `NMSE ${error.toExponential(1)}, expected less than ${bound}`;
    return (program.logits && (await wrongInParts(program, reference.tokens, kind))) || error;
  } catch (error) {
    return (error as Error).message;
  } finally {
    model.close();
  }
}
