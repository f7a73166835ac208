/** Chooses the subgroup matrices of an adapter that the kernels multiply. */
import type { SubgroupMatrix } from "../../../base/index.ts";

/** The feature of Dawn and of browsers, until it has a name in WebGPU. */
export const SUBGROUP_MATRIX = "chromium-experimental-subgroup-matrix" as GPUFeatureName;

/** Sizes and types of one product that an adapter computes. */
interface Config {
  readonly componentType: string;
  readonly resultComponentType: string;
  readonly M: number;
  readonly N: number;
  readonly K: number;
}

/** The part of an adapter's description that matters here. */
export interface MatrixInfo {
  readonly subgroupMaxSize?: number;
  readonly subgroupMatrixConfigs?: Iterable<Config>;
}

/** Sizes of the tiles in `tile_matrix.wgsl`, which an adapter's must divide. */
const TILE = { strip: 16, columns: 64, depth: 32 };
/** Halves and sums in a vector of workgroup memory. */
const VECTOR = { halves: 8, sums: 4 };

/**
 * The largest of the adapter's products of float16 with float32 sums that fit the kernels; undefined: it has no such
 * product. Subgroups have the adapter's maximum size in kernels with subgroup matrices.
 */
export function chooseMatrix({
  subgroupMaxSize: width = 0,
  subgroupMatrixConfigs = [],
}: MatrixInfo): SubgroupMatrix | undefined {
  const fitting = [...subgroupMatrixConfigs].filter(
    ({ componentType, resultComponentType, M, N, K }) =>
      componentType === "f16" &&
      resultComponentType === "f32" &&
      TILE.columns % width === 0 &&
      TILE.strip % M === 0 &&
      width % N === 0 &&
      N % VECTOR.sums === 0 &&
      TILE.depth % K === 0 &&
      K % VECTOR.halves === 0,
  );
  const [largest] = fitting.toSorted((a, b) => b.M * b.N * b.K - a.M * a.N * a.K);
  return largest && { m: largest.M, n: largest.N, k: largest.K, width };
}
