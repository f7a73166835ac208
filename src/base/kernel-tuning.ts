/**
 * Tuning of a GPU kernel: workgroup sizes, and precision traded for speed. Results stay the same up to rounding. The
 * fastest choice depends on the device and is measured there (`engine/backends/webgpu/tune.ts`).
 */

/**
 * Sizes, `loads16` and `double` change only the order of sums; `packed`, `f16`, `matrix` and `attention` change
 * rounding, as their snippets say.
 */
export interface Tuning {
  /** Threads per workgroup in kernels for few rows. */
  readonly threads: number;
  /** Columns per workgroup in kernels for few rows. */
  readonly columns: number;
  /** Rows and columns per workgroup in kernels for many rows. */
  readonly tileRows: number;
  readonly tileColumns: number;
  /** Kernels for few rows read weights 16 bytes at a time, for the block types that have that. */
  readonly loads16: boolean;
  /** Products on bytes for few rows, for the block types that have them: x is rounded to 8 bits. */
  readonly packed: boolean;
  /** Kernels for many rows keep weights in workgroup memory as float16. Requires `shader-f16`. */
  readonly f16: boolean;
  /** Kernels for many rows have two tiles in workgroup memory: one is loaded while the other is multiplied. */
  readonly double: boolean;
  /**
   * Kernels for many rows multiply subgroup matrices, for weights other than float32: both factors are rounded to
   * float16 if the device multiplies that, sums are float32. Requires a `SubgroupMatrix`.
   */
  readonly matrix: boolean;
  /**
   * Attention of many rows multiplies subgroup matrices: queries, keys, values and shares are rounded to float16, sums
   * are float32. Requires a `SubgroupMatrix` of float16.
   */
  readonly attention: boolean;
}

/** Subgroup matrices that a device multiplies: (m, k) by (k, n) to (m, n) float32, and its subgroups' size. */
export interface SubgroupMatrix {
  /** The type of both factors. */
  readonly type: "f16" | "f32";
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly width: number;
}

/** Runs on every device; precise mode uses it, apart from the sizes. */
export const PLAIN: Tuning = {
  threads: 64,
  columns: 4,
  tileRows: 32,
  tileColumns: 64,
  loads16: false,
  packed: false,
  f16: false,
  double: false,
  matrix: false,
  attention: false,
};

/** Allowed sizes; any of them can be combined. */
export const SIZES = {
  threads: [32, 64, 128, 256],
  columns: [1, 2, 4, 8],
  tileRows: [32, 64, 128],
  tileColumns: [64, 128],
} as const satisfies Partial<Record<keyof Tuning, readonly number[]>>;
export type SizeName = keyof typeof SIZES;

/** Rows that a workgroup of a kernel for few rows takes at once, if its sums are at most this many, and if not. */
const ROWS_AT_ONCE = { sumsMax: 512, narrow: 8, wide: 4 };
/** Depth of a tile in kernels for many rows. */
const TILE_DEPTH = 32;
/** For subgroup matrices: bytes of a row or column of a tile, and rows of results that pass through memory at once. */
const MATRIX = { rowBytes: { f16: 2 * TILE_DEPTH + 16, f32: 4 * TILE_DEPTH + 16 }, stripRows: 16 };

/** Bytes of a workgroup of the kernel for attention by subgroup matrices, for its largest heads. */
export const ATTENTION_BYTES = 31_120;

/** Returns whether the kernel for attention multiplies subgroup matrices of a device. */
export const attendsByMatrix = (matrix: SubgroupMatrix | undefined): boolean =>
  matrix?.type === "f16" && matrix.n % 8 === 0;

/** Rows that a workgroup takes at once in kernels for few rows: each sum is completed by a separate thread. */
export const rowsAtOnce = ({ threads, columns }: Pick<Tuning, "threads" | "columns">): number =>
  Math.min(ROWS_AT_ONCE[threads * (columns + 1) <= ROWS_AT_ONCE.sumsMax ? "narrow" : "wide"], threads / columns);

/** A device's limits for a workgroup. */
interface WorkgroupLimits {
  readonly maxComputeInvocationsPerWorkgroup: number;
  readonly maxComputeWorkgroupStorageSize: number;
}

/** Returns whether a device can run a tuning, by its limits. */
export function fits(
  { threads, columns, tileRows, tileColumns, f16, double, matrix, attention }: Tuning,
  device: { limits: WorkgroupLimits; subgroups: boolean; matrix?: SubgroupMatrix | undefined },
): boolean {
  const { limits, subgroups } = device;
  const sums = columns + 1; // plus the sum of squares
  const sumBytes = (4 * rowsAtOnce({ threads, columns }) * sums * threads) / (subgroups ? 4 : 1);
  const tileThreads = (tileRows / 4) * (tileColumns / 8);
  const buffers = double ? 2 : 1;
  // With subgroup matrices, the few float32 weights have one tile.
  const floatBytes = (matrix ? 1 : buffers) * TILE_DEPTH * (4 * tileRows + (f16 ? 2 : 4) * tileColumns);
  const matrixBytes =
    buffers * MATRIX.rowBytes[device.matrix?.type ?? "f16"] * (tileRows + tileColumns) +
    4 * MATRIX.stripRows * tileColumns;
  return (
    Math.max(threads, tileThreads) <= limits.maxComputeInvocationsPerWorkgroup &&
    Math.max(sumBytes, floatBytes, matrix ? matrixBytes : 0, attention ? ATTENTION_BYTES : 0) <=
      limits.maxComputeWorkgroupStorageSize
  );
}

/**
 * The user's choice of kernels: `auto`, the fastest whose results are within the bounds of a trial, which may round
 * activations; `exact`, the fastest with float32's accuracy; or a tuning.
 */
export type KernelChoice = "auto" | "exact" | Tuning;

/** The texts that `parseKernels` accepts. */
export const KERNELS_EXPECTED =
  "auto, exact, plain, or some of threads=32|64|128|256, columns=1|2|4|8, tile=32|64|128 x 64|128, loads16, " +
  "packed, f16, double, matrix and attention, separated by commas";

/** A choice from text, such as `threads=128,packed`; missing parts are as in `PLAIN`. Undefined: invalid. */
export function parseKernels(text: string): KernelChoice | undefined {
  if (text === "auto" || text === "exact") return text;
  if (text === "plain") return PLAIN;
  let tuning = PLAIN;
  for (const part of text.split(",")) {
    const found = parsePart(part.trim());
    if (!found) return undefined;
    tuning = { ...tuning, ...found };
  }
  return tuning;
}

/** The fields of a tuning that are on or off. */
const MARKS = [
  "loads16",
  "packed",
  "f16",
  "double",
  "matrix",
  "attention",
] as const satisfies readonly (keyof Tuning)[];
const isMark = (text: string): text is (typeof MARKS)[number] => MARKS.some((mark) => mark === text);

function parsePart(part: string): Partial<Tuning> | undefined {
  if (isMark(part)) return { [part]: true };
  const match = /^(?:(threads|columns)=([1-9]\d*)|tile=([1-9]\d*)x([1-9]\d*))$/.exec(part);
  if (!match) return undefined;
  const [, name, size, tileRows, tileColumns] = match;
  const found: Record<string, number> = name
    ? { [name]: Number(size) }
    : { tileRows: Number(tileRows), tileColumns: Number(tileColumns) };
  const isKnown = Object.entries(found).every(([key, value]) => SIZES[key as SizeName].some((each) => each === value));
  return isKnown ? found : undefined;
}

/** The text form of a tuning; `parseKernels` reads it back. */
export function formatTuning(tuning: Tuning): string {
  const { threads, columns, tileRows, tileColumns } = tuning;
  const sizes = [`threads=${threads}`, `columns=${columns}`, `tile=${tileRows}x${tileColumns}`];
  return [...sizes, ...MARKS.filter((mark) => tuning[mark])].join(",");
}
