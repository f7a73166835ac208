/**
 * A test file's tier follows from its needs: `gpu` files compute on a GPU (SwiftShader, the headless browser), `soak`
 * files kill, flood or starve their subject, `process` files start programs or listen on sockets, and `unit` files are
 * the rest. Only names are listed by hand: a new file gets its tier from its imports. `real` files are in
 * test/real/: they run models with trained weights, and skip their tests where the weights cannot be fetched.
 */
import { join, normalize } from "node:path";

export const TIERS = ["unit", "process", "gpu", "soak", "real"] as const;
export type Tier = (typeof TIERS)[number];

const ROOT = join(import.meta.dir, "..");
const REAL = /^test\/real\//;
const SOAK = /^test\/hostile\/|\bkill\.test\.ts$/;
const GPU = /\bswiftShaderEnv\b|\bbrowserPath\b/;
const SHARED_DEVICE = /\bsharedWebGpu\b/;
const PROCESS =
  /\bBun\.(spawn|spawnSync|serve|listen)\(|\bspawnRunner\b|\bRunnerProcess\.start\b|\bnew Worker\(\s*new URL/;

/** Paths of all test files from the repository's root, in order of name. */
export async function testFiles(): Promise<string[]> {
  return (await Array.fromAsync(new Bun.Glob("test/**/*.test.ts").scan({ cwd: ROOT }))).toSorted();
}

/** The tier of each file. */
export async function tiersOf(files: readonly string[]): Promise<Map<string, Tier>> {
  const texts = new Map<string, Promise<string>>();
  const read = (path: string): Promise<string> => {
    const known = texts.get(path) ?? readTest(path);
    texts.set(path, known);
    return known;
  };
  const tierOf = async (file: string): Promise<Tier> => {
    if (REAL.test(file)) return "real";
    if (SOAK.test(file)) return "soak";
    const all = await Promise.all([...(await importedTests(file, read))].map(read));
    if (all.some((text) => GPU.test(text))) return "gpu";
    return all.some((text) => PROCESS.test(text)) ? "process" : "unit";
  };
  return new Map(await Promise.all(files.map(async (file) => [file, await tierOf(file)] as const)));
}

/** The files that compute on a device which all files of a process share. */
export async function deviceSharers(files: readonly string[]): Promise<Set<string>> {
  const texts = await Promise.all(files.map((file) => readTest(file)));
  return new Set(files.filter((_, i) => SHARED_DEVICE.test(texts[i]!)));
}

const readTest = (path: string): Promise<string> => Bun.file(join(ROOT, path)).text();

/** A file and all files of test/ whose values it imports, directly or through others. */
export async function importedTests(file: string, read = readTest): Promise<Set<string>> {
  const seen = new Set([file]);
  for (const path of seen) {
    const text = await read(path);
    for (const [, name] of text.matchAll(/^(?:import|export) (?!type )[^;"]*?from "(\.[^"]+\.ts)"/gm)) {
      const from = normalize(join(path, "..", name!));
      if (from.startsWith("test/")) seen.add(from);
    }
  }
  return seen;
}
