/**
 * Writes docs/models.md.
 *
 *   bun bench/models-table.ts                   from the registries and bench/models/checked.json
 *   bun bench/models-table.ts --check [FOLDER]  first runs all reference models, also of a folder like
 *                                               golden/archs, and updates checked.json; entries of absent
 *                                               models stay
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { archs } from "../src/engine/architectures/index.ts";
import { simdBackend } from "../src/engine/backends/host/simd.ts";
import { onnxBackend } from "../src/engine/backends/onnx/index.ts";
import { webGpuBackend } from "../src/engine/backends/host/webgpu.ts";
import { normalized } from "../src/engine/batching/pooling.ts";
import { headOf } from "../src/engine/program/head.ts";
import { writeGguf } from "../src/engine/formats/files/write.ts";
import { nmse } from "../test/engine/backends/compare.ts";
import { readEmbedders } from "../test/engine/architectures/embedders.ts";
import { diffusionNames, makeDiffusionModel, PROMPT } from "../test/engine/architectures/diffusion-models.ts";
import { archOf, makeModel, modelNames, TOKENS } from "../test/engine/architectures/models.ts";
import { makeOutline, OUTLINE_TOKENS, readOutlines, type Outline } from "../test/engine/architectures/outlines.ts";
import {
  answerOf,
  isRanker,
  openReference,
  referencesWith,
  type Reference,
} from "../test/engine/architectures/references.ts";
import { BACKENDS, makeTable, type CheckedModels } from "./models/table.ts";

const { values, positionals } = parseArgs({ options: { check: { type: "boolean" } }, allowPositionals: true });
const recordPath = join(import.meta.dir, "models/checked.json");
const tablePath = resolve(import.meta.dir, "../docs/models.md");
const backends = { simd: simdBackend, webgpu: webGpuBackend, onnx: onnxBackend };
const QUANTIZED = 1e-5; // larger bounds apply to files that llama.cpp itself rounds

if (values.check) await Bun.write(recordPath, `${JSON.stringify(await check(positionals[0]), null, 2)}\n`);
await Bun.write(tablePath, makeTable((await Bun.file(recordPath).json()) as CheckedModels));
Bun.spawnSync([process.execPath, "fmt", tablePath, recordPath]);

interface Found {
  readonly references: Set<string>;
  nmse: number;
  /** Error of references with a larger bound: used only if there are no others. */
  looseNmse: number;
  readonly missing: Map<string, Set<string>>;
}

async function check(more: string | undefined): Promise<CheckedModels> {
  const folder = await mkdtemp(join(tmpdir(), "hearth-models-table-"));
  const references = [...referencesWith(more), ...(await madeIn(folder))];
  const found = await before(new Set(references.map(({ name }) => name)));
  for (const reference of references) {
    const opened = openReference(reference);
    const { model, arch } = opened;
    try {
      if (isRanker(model, arch) || !Object.hasOwn(archs, arch)) continue;
      const { program, got, expected } = await answerOf(reference, opened);
      const isUnit = reference.logits.includes("/embeddings/");
      const error = nmse(isUnit ? normalized(got) : got, expected);
      if (!(error < reference.nmseMax)) throw new Error(`NMSE ${error}`);
      const entry = found.get(arch) ?? { references: new Set(), nmse: 0, looseNmse: 0, missing: new Map() };
      found.set(arch, entry);
      entry.references.add(reference.name);
      if (reference.nmseMax <= QUANTIZED) entry.nmse = Math.max(entry.nmse, error);
      else entry.looseNmse = Math.max(entry.looseNmse, error);
      for (const name of BACKENDS) {
        const lacks = entry.missing.get(name) ?? new Set();
        entry.missing.set(name, lacks);
        const parts = program.diffusion ? [program, headOf(program)] : [program];
        for (const each of parts.flatMap((part) => backends[name].missing?.(part) ?? [])) lacks.add(each);
      }
    } catch (error) {
      console.log(`${reference.name}: ${(error as Error).message}`);
    } finally {
      model.close();
    }
  }
  await rm(folder, { recursive: true });
  const sorted = [...found].toSorted(([a], [b]) => a.localeCompare(b, "en"));
  return Object.fromEntries(sorted.map(([arch, entry]) => [arch, plain(entry)]));
}

/** Decoders with bidirectional attention, which few of their files ask for, and few backends support. */
function isTurned(name: string, { arch }: Outline): boolean {
  return name.endsWith("-two-sided") && arch !== "llama-embed";
}

/** The models made in code, as files. */
async function madeIn(folder: string): Promise<Reference[]> {
  const made: Reference[] = [];
  const kinds = [
    ["logits", readOutlines()],
    ["embeddings", readEmbedders()],
  ] as const;
  for (const [kind, outlines] of kinds) {
    for (const [name, outline] of outlines) {
      if (isTurned(name, outline)) continue;
      const gguf = join(folder, `${kind}-${name}.gguf`);
      await writeGguf(gguf, makeOutline(name, outline));
      const logits = join(import.meta.dir, "../test/engine/architectures", kind, `${name}.f32`);
      made.push({ name: `made/${name}`, gguf, logits, tokens: OUTLINE_TOKENS, nmseMax: QUANTIZED });
    }
  }
  const outlined = new Set([...readOutlines().values()].map(({ arch }) => arch));
  for (const name of modelNames.filter((each) => !outlined.has(archOf(each)))) {
    const gguf = join(folder, `model-${name}.gguf`);
    await writeGguf(gguf, makeModel(name));
    const logits = join(import.meta.dir, "../test/engine/architectures/logits", `${name}.f32`);
    made.push({ name: `made/${name}`, gguf, logits, tokens: TOKENS, nmseMax: QUANTIZED });
  }
  for (const name of diffusionNames) {
    const gguf = join(folder, `diffusion-${name}.gguf`);
    await writeGguf(gguf, makeDiffusionModel(name));
    const logits = join(import.meta.dir, "../test/engine/architectures/logits", `${name}.f32`);
    made.push({ name: `made/${name}`, gguf, logits, tokens: PROMPT, nmseMax: QUANTIZED });
  }
  return made;
}

/** Keeps the earlier results of models that are absent now. */
async function before(here: ReadonlySet<string>): Promise<Map<string, Found>> {
  const last = (await Bun.file(recordPath).json()) as CheckedModels;
  const kept = new Map<string, Found>();
  for (const [arch, { references, nmse, missing }] of Object.entries(last)) {
    const absent = references.filter((name) => !here.has(name));
    if (absent.length === 0 || !Object.hasOwn(archs, arch)) continue;
    const isAllAbsent = absent.length === references.length;
    const lacks = isAllAbsent ? Object.entries(missing).map(([name, ops]) => [name, new Set(ops)] as const) : [];
    kept.set(arch, { references: new Set(absent), nmse, looseNmse: 0, missing: new Map(lacks) });
  }
  return kept;
}

function plain({ references, nmse, looseNmse, missing }: Found): CheckedModels[string] {
  return {
    references: [...references].toSorted(),
    nmse: Number((nmse || looseNmse).toExponential(1)),
    missing: Object.fromEntries([...missing].filter(([, ops]) => ops.size > 0).map(([name, ops]) => [name, [...ops]])),
  };
}
