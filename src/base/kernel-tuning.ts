/**
 * Tuning of a GPU kernel: workgroup sizes, and precision traded for speed. Results stay the same up to rounding. The
 * fastest choice depends on the device and is measured there (`engine/backends/webgpu/tune.ts`).
 */

/** Sizes and `loads16` change only the order of sums; `packed` and `f16` change rounding, as their snippets say. */
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
}

/** Runs on every device; precise mode uses it, except for the sizes. */
export const PLAIN: Tuning = {
  threads: 64,
  columns: 4,
  tileRows: 32,
  tileColumns: 64,
  loads16: false,
  packed: false,
  f16: false,
};

/** Allowed sizes; any of them can be combined. */
export const SIZES = {
  threads: [32, 64, 128, 256],
  columns: [1, 2, 4, 8],
  tileRows: [32, 64],
  tileColumns: [64, 128],
} as const satisfies Partial<Record<keyof Tuning, readonly number[]>>;
export type SizeName = keyof typeof SIZES;

/** Rows that a workgroup of a kernel for few rows takes at once, if its sums are at most so many, and if not. */
const ROWS_AT_ONCE = { sumsMax: 512, narrow: 8, wide: 4 };
/** Depth of a tile in kernels for many rows. */
const TILE_DEPTH = 32;

/** Rows that a workgroup takes at once in kernels for few rows: each sum is finished by a thread of its own. */
export const rowsAtOnce = ({ threads, columns }: Pick<Tuning, "threads" | "columns">): number =>
  Math.min(ROWS_AT_ONCE[threads * (columns + 1) <= ROWS_AT_ONCE.sumsMax ? "narrow" : "wide"], threads / columns);

/** A device's limits for a workgroup. */
interface WorkgroupLimits {
  readonly maxComputeInvocationsPerWorkgroup: number;
  readonly maxComputeWorkgroupStorageSize: number;
}

/** Returns whether a device can run a tuning, by its limits. */
export function fits(
  { threads, columns, tileRows, tileColumns, f16 }: Tuning,
  { limits, subgroups }: { limits: WorkgroupLimits; subgroups: boolean },
): boolean {
  const sums = columns + 1; // plus the sum of squares
  const sumBytes = (4 * rowsAtOnce({ threads, columns }) * sums * threads) / (subgroups ? 4 : 1);
  const tileThreads = (tileRows / 4) * (tileColumns / 8);
  const tileBytes = TILE_DEPTH * (4 * tileRows + (f16 ? 2 : 4) * tileColumns);
  return (
    Math.max(threads, tileThreads) <= limits.maxComputeInvocationsPerWorkgroup &&
    Math.max(sumBytes, tileBytes) <= limits.maxComputeWorkgroupStorageSize
  );
}

/**
 * The user's choice of kernels: `auto`, the fastest whose results are within the bounds of a trial, which may round
 * activations to 8 bits; `exact`, the fastest with float32's accuracy; or a tuning.
 */
export type KernelChoice = "auto" | "exact" | Tuning;

/** The texts that `parseKernels` accepts. */
export const KERNELS_EXPECTED =
  "auto, exact, plain, or some of threads=32|64|128|256, columns=1|2|4|8, tile=32x64|32x128|64x64|64x128, loads16, packed and " +
  "f16, separated by commas";

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

function parsePart(part: string): Partial<Tuning> | undefined {
  if (part === "loads16" || part === "packed" || part === "f16") return { [part]: true };
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
export function formatTuning({ threads, columns, tileRows, tileColumns, loads16, packed, f16 }: Tuning): string {
  const sizes = [`threads=${threads}`, `columns=${columns}`, `tile=${tileRows}x${tileColumns}`];
  const marks = Object.entries({ loads16, packed, f16 }).flatMap(([name, on]) => (on ? [name] : []));
  return [...sizes, ...marks].join(",");
}
