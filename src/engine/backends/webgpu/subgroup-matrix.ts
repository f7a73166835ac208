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
/** Values of a vector of workgroup memory. */
const VECTOR = { f16: 8, f32: 4 };

/**
 * The largest of the adapter's products with float32 sums that fit the kernels, of float16 rather than of float32;
 * undefined: it has no such product. Subgroups have the adapter's maximum size in kernels with subgroup matrices.
 */
export function chooseMatrix(info: MatrixInfo, hasF16: boolean): SubgroupMatrix | undefined {
  const { subgroupMaxSize: width = 0, subgroupMatrixConfigs = [] } = info;
  const configs = [...subgroupMatrixConfigs].toSorted((a, b) => b.M * b.N * b.K - a.M * a.N * a.K);
  for (const type of hasF16 ? (["f16", "f32"] as const) : (["f32"] as const)) {
    const largest = configs.find(
      ({ componentType, resultComponentType, M, N, K }) =>
        componentType === type &&
        resultComponentType === "f32" &&
        TILE.columns % width === 0 &&
        TILE.strip % M === 0 &&
        width % N === 0 &&
        N % VECTOR.f32 === 0 &&
        TILE.depth % K === 0 &&
        K % VECTOR[type] === 0,
    );
    if (largest) return { type, m: largest.M, n: largest.N, k: largest.K, width };
  }
  return undefined;
}
