/** Computes the answers of shipped libraries to the self-test: in this process, or in an emulator. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { FEATURES } from "../../../../kernels/simd/layout.ts";
import type { Backend } from "../../../../src/engine/program/backend.ts";
import { makeNativeMemory } from "../../../../src/engine/backends/host/simd-memory.ts";
import { levelsHere, libraryFolder } from "../../../../src/engine/backends/host/simd-library.ts";
import { wasmBackend } from "../../../../src/engine/backends/host/wasm.ts";
import { answerOf } from "../../../../src/engine/backends/selftest/answer.ts";
import { canLoadForeign, loadForeign } from "./foreign.ts";
import { backendOf, canEmulate, startEmulated } from "./hosts.ts";

/** Names of the shipped libraries that run passes, so that they have an answer. */
export const passLibraries = (): string[] =>
  readdirSync(libraryFolder()).filter((name) => /\.(so|dylib|dll)$|^simd\.wasm$/.test(name));

/** The level of x64 for which a library is built, as it is in its name; undefined: it is for another processor. */
const levelOf = (name: string): string | undefined => /-x64-(\w+)\./.exec(name)?.[1];

const here = new Set(levelsHere().map(({ level }) => level));

/** Returns whether this machine can run a library, built for any system. */
export function canAnswer(name: string): boolean {
  if (name.endsWith(".wasm")) return true;
  const level = levelOf(name);
  return level === undefined ? canEmulate("arm64") : canLoadForeign && here.has(level);
}

/** The features beyond its level that a library has code for and this machine can run. */
export function featuresOf(name: string): number {
  if (name.endsWith(".wasm") || name.includes("neon80")) return 0;
  if (levelOf(name) === undefined) return FEATURES.i8mm;
  return levelOf(name) === "avx2" && !name.startsWith("macos") && here.has("avxvnni") ? FEATURES.avxvnni : 0;
}

/** The answer of a library of that name in `kernels/simd/lib`, by one thread. @param features as `FEATURES` */
export async function answerOfShipped(name: string, features = 0): Promise<string> {
  if (name.endsWith(".wasm")) return answerOfBackend(wasmBackend);
  const path = join(libraryFolder(), name);
  if (levelOf(name) !== undefined) {
    const run = loadForeign(path);
    const { words, panelRows } = levelsHere().find(({ level }) => level === levelOf(name))!; // canAnswer has found it
    const kernels = { level: name, features, words, panelRows };
    return answerOfBackend(backendOf(kernels, makeNativeMemory, (header) => run(header, 0)));
  }
  const emulated = startEmulated(name.includes("neon80") ? "arm64 of 2016" : "arm64", path);
  try {
    return await answerOfBackend(emulated.backend(features));
  } finally {
    await emulated.stop();
  }
}

const answerOfBackend = (backend: Backend): Promise<string> =>
  answerOf(
    (sheet, mode) => backend.load(sheet.program, { ...sheet.options, ...mode, threads: 1, cacheDir: undefined }),
    { threads: 1 },
  );
