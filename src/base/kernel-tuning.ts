/**
 * What may differ between two sources of a kernel that compute the same: sizes of workgroups, and how much precision is
 * given for speed. Which of them is fastest depends on the device and is measured there
 * (`engine/backends/webgpu/tune.ts`).
 */

/** Results do not depend on the sizes beyond the order of sums; on `packed` and `f16` as their snippets say. */
export interface Tuning {
  /** Threads of a workgroup of the kernels for few rows. */
  readonly threads: number;
  /** Columns that such a workgroup makes. */
  readonly columns: number;
  /** Rows and columns that a workgroup of the kernels for many rows makes. */
  readonly tileRows: number;
  readonly tileColumns: number;
  /** Products for few rows of bytes, for the block types that have them: x is rounded to 8 bits. */
  readonly packed: boolean;
  /** Weights of the kernels for many rows wait in workgroup memory as float16. Wants `shader-f16`. */
  readonly f16: boolean;
}

/** What every device can run, and what is run in precise mode but for the sizes. */
export const PLAIN: Tuning = { threads: 64, columns: 4, tileRows: 32, tileColumns: 64, packed: false, f16: false };

/** The sizes that there are; any of them goes with any other. */
export const SIZES = {
  threads: [32, 64, 128, 256],
  columns: [1, 2, 4, 8],
  tileRows: [32, 64],
  tileColumns: [64, 128],
} as const satisfies Partial<Record<keyof Tuning, readonly number[]>>;
export type SizeName = keyof typeof SIZES;

/** Bytes in workgroup memory of a kernel for few rows: for each thread, or subgroup of four, and sum of a row. */
const SUM_BYTES = 16;
/** Depth of a tile of the kernels for many rows. */
const TILE_DEPTH = 32;

/** What a device allows a workgroup. */
interface WorkgroupLimits {
  readonly maxComputeInvocationsPerWorkgroup: number;
  readonly maxComputeWorkgroupStorageSize: number;
}

/** Whether a device can run it, as far as its limits say. */
export function fits(
  { threads, columns, tileRows, tileColumns, f16 }: Tuning,
  { limits, subgroups }: { limits: WorkgroupLimits; subgroups: boolean },
): boolean {
  const sums = columns + 1; // and that of the squares
  const sumBytes = (SUM_BYTES * sums * threads) / (subgroups ? 4 : 1);
  const tileThreads = (tileRows / 4) * (tileColumns / 8);
  const tileBytes = TILE_DEPTH * (4 * tileRows + (f16 ? 2 : 4) * tileColumns);
  return (
    Math.max(threads, tileThreads) <= limits.maxComputeInvocationsPerWorkgroup &&
    Math.max(sumBytes, tileBytes) <= limits.maxComputeWorkgroupStorageSize
  );
}

/**
 * What a person may say of the kernels: the fastest on the device of those whose results agree with the reference as
 * float32 does, the fastest of all, or exactly these.
 */
export type KernelChoice = "auto" | "fast" | Tuning;

/** What `parseKernels` takes. */
export const KERNELS_EXPECTED =
  "auto, fast, plain, or some of threads=32|64|128|256, columns=1|2|4|8, tile=32x64|32x128|64x64|64x128, packed and f16, " +
  "separated by commas";

/** A choice from text, such as `threads=128,packed`; what it leaves out is as in `PLAIN`. undefined: it is none. */
export function parseKernels(text: string): KernelChoice | undefined {
  if (text === "auto" || text === "fast") return text;
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
  if (part === "packed" || part === "f16") return { [part]: true };
  const match = /^(?:(threads|columns)=([1-9]\d*)|tile=([1-9]\d*)x([1-9]\d*))$/.exec(part);
  if (!match) return undefined;
  const [, name, size, tileRows, tileColumns] = match;
  const found: Record<string, number> = name
    ? { [name]: Number(size) }
    : { tileRows: Number(tileRows), tileColumns: Number(tileColumns) };
  const isKnown = Object.entries(found).every(([key, value]) => SIZES[key as SizeName].some((each) => each === value));
  return isKnown ? found : undefined;
}

/** The text that `parseKernels` makes the same of. */
export function formatTuning({ threads, columns, tileRows, tileColumns, packed, f16 }: Tuning): string {
  const sizes = [`threads=${threads}`, `columns=${columns}`, `tile=${tileRows}x${tileColumns}`];
  return [...sizes, ...(packed ? ["packed"] : []), ...(f16 ? ["f16"] : [])].join(",");
}
