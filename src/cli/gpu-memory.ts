/** The memory that models may use on a GPU. */
import { totalMemory } from "../base/system.ts";

/** Apple's GPUs share the machine's memory, and Metal recommends this part of it. */
const SHARE = 2 / 3;

/** Bytes for models on the GPU; undefined: the GPU itself refuses models without room. */
export function gpuMemoryHere(
  setting: number | "auto",
  { platform, arch, total }: { platform: string; arch: string; total: () => number } = {
    platform: process.platform,
    arch: process.arch,
    total: totalMemory,
  },
): number | undefined {
  if (setting !== "auto") return setting;
  return platform === "darwin" && arch === "arm64" ? Math.floor(total() * SHARE) : undefined;
}
