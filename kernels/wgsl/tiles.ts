/** The snippets of the kernels for many rows: tiles of floats, or of subgroup matrices. */
import { assert, type SubgroupMatrix, type Tuning } from "../../src/base/index.ts";
import matrices from "./matrices.wgsl" with { type: "text" };
import tile from "./tile.wgsl" with { type: "text" };
import tileHalves from "./tile_halves.wgsl" with { type: "text" };
import tileSingles from "./tile_singles.wgsl" with { type: "text" };
import xFour from "./x_four.wgsl" with { type: "text" };
import tileFloats from "./tile_floats.wgsl" with { type: "text" };
import tileMatrix from "./tile_matrix.wgsl" with { type: "text" };

const FEATURE = "chromium_experimental_subgroup_matrix";
/** The compiler cannot see that all threads of a subgroup have the same `subgroup_id`. */
const UNIFORM = "diagnostic(off, chromium.subgroup_matrix_uniformity);\n";
/** The number of tiles in workgroup memory. */
const BUFFERS = /^const BUFFERS: u32 = \d+u; \/\/ tuned: double$/m;
/** A constant that is a field of `SubgroupMatrix`. */
const SIZE = /^const (\w+): u32 = \d+u; \/\/ matrix: (m|n|k|width)$/gm;

/** Returns whether the kernels for many rows multiply subgroup matrices: float32 weights are few, and stay exact. */
const usesMatrix = ({ matrix }: Tuning, quant: string | undefined): boolean => matrix && quant !== "f32";

/** Returns whether the kernels for many rows read x as float16. @param device the device's subgroup matrices */
export const readsHalves = (tuning: Tuning, quant: string, device: SubgroupMatrix | undefined): boolean =>
  usesMatrix(tuning, quant) && device?.type === "f16";

/** The snippet for a block type, and the features that it needs. @param matrix the device's */
export function tileOf(
  tuning: Tuning,
  quant: string | undefined,
  matrix: SubgroupMatrix | undefined,
): { source: string; features: readonly string[] } {
  const byMatrix = usesMatrix(tuning, quant);
  const isDouble = tuning.double && byMatrix === tuning.matrix; // as in `fits`
  const parts = isDouble ? tile.replace(BUFFERS, "const BUFFERS: u32 = 2u;") : tile;
  if (!byMatrix) return { source: [parts, xFour, tileFloats].join("\n"), features: [] };
  const { source: types, features } = matricesOf(matrix);
  const before = matrix?.type === "f32" ? [parts, xFour, tileSingles] : [parts, tileHalves];
  return { source: [...before, types, tileMatrix].join("\n"), features };
}

/** The snippet with the types of a device's subgroup matrices, and the features that it needs. */
export function matricesOf(matrix: SubgroupMatrix | undefined): { source: string; features: readonly string[] } {
  assert(matrix, "subgroup matrices on a device without");
  const source = matrices.replace(
    SIZE,
    (_, name: string, field: Exclude<keyof SubgroupMatrix, "type">) => `const ${name}: u32 = ${matrix[field]}u;`,
  );
  return { source, features: [FEATURE, "subgroups", ...(matrix.type === "f16" ? ["f16"] : [])] };
}

/** The first lines of a source that uses some features. */
export function directives(features: ReadonlySet<string>): string {
  const enabled = [...features].map((feature) => `enable ${feature};\n`).join("");
  return features.has(FEATURE) ? `${enabled}${UNIFORM}` : enabled;
}
