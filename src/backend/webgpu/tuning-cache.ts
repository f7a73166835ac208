/**
 * The fastest kernels of devices that were searched before, in one file: `gpu-kernels.json` in the cache folder. A file
 * that cannot be read is as good as none, and is written anew.
 */
import { createHash } from "node:crypto";
import { mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { kernelSource } from "../../../kernels/wgsl/sources.ts";
import { formatTuning, parseKernels, PLAIN, type Tuning } from "../../base/kernel-tuning.ts";
import type { Device } from "./device.ts";
import type { ShapeClass } from "./trial.ts";
import type { Tunings } from "./tune.ts";

const FILE_NAME = "gpu-kernels.json";
/** A few hundred bytes for each block type, length of rows and driver that this machine ever had. */
const FILE_BYTES_MAX = 1024 * 1024;
const ENTRIES_MAX = 1000;

/** What is found again: the same device and driver, the same kernels, the same kind of matrix. */
export function tuningKey(device: Device, { quant, dim }: ShapeClass): string {
  const { vendor, architecture, device: model, description } = device.gpu.adapterInfo;
  const { subgroups } = device;
  const sources = [PLAIN, { ...PLAIN, packed: true, f16: true }].flatMap((tuning) =>
    (["linear", "matmul"] as const).map((kernel) => kernelSource(kernel, [quant], { subgroups, tuning })),
  );
  const version = createHash("sha256").update(sources.join()).digest("hex").slice(0, 16);
  return [vendor, architecture, model, description, quant, dim, version].join("|");
}

/** undefined: nothing is known. */
export async function readTunings(cacheDir: string, key: string): Promise<Tunings | undefined> {
  return (await readAll(cacheDir)).get(key);
}

/** Keeps what was found, beside what others keep. Two processes at once: one of them searches again another time. */
export async function writeTunings(cacheDir: string, key: string, tunings: Tunings): Promise<void> {
  const all = await readAll(cacheDir);
  all.delete(key);
  const kept = [...all, [key, tunings] as const].slice(-ENTRIES_MAX);
  const texts = kept.map(([each, { exact, fast }]) => [each, { exact: formatTuning(exact), fast: formatTuning(fast) }]);
  await replaceFile(join(cacheDir, FILE_NAME), `${JSON.stringify(Object.fromEntries(texts), null, 2)}\n`);
}

async function readAll(cacheDir: string): Promise<Map<string, Tunings>> {
  const path = join(cacheDir, FILE_NAME);
  const found = new Map<string, Tunings>();
  try {
    if ((await stat(path)).size > FILE_BYTES_MAX) return found;
    const entries: unknown = JSON.parse(await readFile(path, "utf8"));
    if (typeof entries !== "object" || entries === null) return found;
    for (const [key, value] of Object.entries(entries)) {
      const tunings = parseTunings(value);
      if (tunings) found.set(key, tunings);
    }
  } catch {
    return new Map(); // there is none, or it is damaged
  }
  return found;
}

function parseTunings(value: unknown): Tunings | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { exact, fast } = value as { exact?: unknown; fast?: unknown }; // checked next
  const [exactly, fastest] = [exact, fast].map(parseTuning);
  return exactly && fastest && !exactly.packed ? { exact: exactly, fast: fastest } : undefined;
}

function parseTuning(text: unknown): Tuning | undefined {
  const choice = typeof text === "string" ? parseKernels(text) : undefined;
  return typeof choice === "object" ? choice : undefined;
}

async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp-${crypto.randomUUID()}`;
  await mkdir(join(path, ".."), { recursive: true });
  try {
    const file = await open(temporary, "w");
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
