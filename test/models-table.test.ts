/** docs/models.md and bench/models/ against the registries and the available reference models. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { FAMILIES } from "../bench/models/families.ts";
import { PULLED } from "../bench/models/pulls.ts";
import { BACKENDS, audioEncoderKinds, makeTable, projectorKinds, type CheckedModels } from "../bench/models/table.ts";
import { archs, loadProgram } from "../src/engine/architectures/index.ts";
import { webGpuBackend } from "../src/engine/backends/host/webgpu.ts";
import { onnxBackend } from "../src/engine/backends/onnx/index.ts";
import { simdBackend } from "../src/engine/backends/host/simd.ts";
import { toolFormats } from "../src/runtime/parse/index.ts";
import { isRanker, openReference, referencesWith } from "./engine/architectures/references.ts";
import { goldenTest } from "./golden.ts";

const ROOT = join(import.meta.dir, "..");
const AGAIN = "run `bun bench/models-table.ts --check`";
const checked: CheckedModels = await Bun.file(join(ROOT, "bench/models/checked.json")).json();
const backends = { simd: simdBackend, webgpu: webGpuBackend, onnx: onnxBackend };

/** A table without the spaces that line its columns up. */
const cells = (text: string): string => text.replace(/ +/g, " ").replace(/-{2,}/g, "-").trim();

describe("the table of models", () => {
  test("equals the table made from the registries", async () => {
    const table = await Bun.file(join(ROOT, "docs/models.md")).text();
    expect(cells(table), AGAIN).toBe(cells(makeTable(checked)));
  });

  test("describes every architecture, with existing tool-call formats", () => {
    const undescribed = Object.keys(archs).filter((arch) => !Object.hasOwn(FAMILIES, arch));
    expect(undescribed, "what are they? bench/models/families.ts says").toEqual([]);
    const formats = Object.values(FAMILIES).flatMap(({ calls }) => calls ?? []);
    expect(formats.filter((format) => !Object.hasOwn(toolFormats, format))).toEqual([]);
  });

  test("has every image encoder of the registry", () => {
    expect(projectorKinds()).toContain("gemma3");
    const seen = new Set(Object.values(FAMILIES).flatMap(({ sees = [] }) => sees));
    const unseen = [...projectorKinds()].filter((kind) => !seen.has(kind));
    expect(unseen, "of which family? bench/models/families.ts says").toEqual([]);
  });

  test("has every audio encoder of the registry", () => {
    const encoders = new Set(Object.values(FAMILIES).flatMap(({ hears = [] }) => hears));
    expect([...audioEncoderKinds()].toSorted(), "of which family? bench/models/families.ts says").toEqual(
      [...encoders].toSorted(),
    );
  });

  goldenTest("describes the reference models correctly", () => {
    const found = new Map<string, { names: Set<string>; lacks: Record<string, boolean> }>();
    for (const reference of referencesWith(undefined)) {
      const { model, arch } = openReference(reference);
      try {
        if (isRanker(model, arch) || !Object.hasOwn(archs, arch)) continue;
        if (!checked[arch]?.references.includes(reference.name)) continue; // fails in arch/reference.test.ts then
        const program = loadProgram(model);
        const entry = found.get(arch) ?? { names: new Set(), lacks: {} };
        found.set(arch, entry);
        entry.names.add(reference.name);
        for (const name of BACKENDS) {
          entry.lacks[name] = (entry.lacks[name] ?? false) || (backends[name].missing?.(program) ?? []).length > 0;
        }
      } finally {
        model.close();
      }
    }
    for (const [arch, { names, lacks }] of found) {
      const { references, missing } = checked[arch]!; // checked above
      if (references.some((name) => !names.has(name))) continue; // the other models' gaps are unknown here
      const says = BACKENDS.map((name) => [name, (missing[name] ?? []).length > 0]);
      expect(Object.fromEntries(says), `${arch}: ${AGAIN}`).toEqual(lacks);
    }
    expect(found.size).toBeGreaterThan(40);
  });
});

test("shares of pulls add up to 95 to 100, and their families have known architectures", () => {
  expect(PULLED.reduce((sum, { share }) => sum + share, 0)).toBeWithin(95, 100);
  const known = new Set([...Object.keys(FAMILIES), "mllama"]); // llama.cpp lacks it too
  expect(PULLED.flatMap(({ archs: names }) => names).filter((name) => !known.has(name))).toEqual([]);
});
