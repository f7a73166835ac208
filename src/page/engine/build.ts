/**
 * Builds the scripts of pages, from the same sources as everything else. An import that browsers lack is an error that
 * names the importing file.
 */
import { join } from "node:path";
import type { BuildArtifact, BunPlugin } from "bun";
import { AppError } from "../../base/index.ts";
import { programFile } from "../../base/system.ts";

export interface BuiltScript {
  /** As other scripts import it, e.g. `worker-main.js`. */
  readonly name: string;
  readonly text: string;
  /** Loaded on demand. */
  readonly lazy: boolean;
  /** True for a script that a page names; others are imported. */
  readonly isEntry: boolean;
}

export interface BrowserBuild {
  /** The entry first. */
  readonly scripts: readonly BuiltScript[];
  /** Our own sources in it. */
  readonly sources: readonly string[];
}

const KERNELS = "kernels/simd/lib/simd.wasm";
/** The entry of a page's Worker. */
const WORKER_ENTRY = join(import.meta.dir, "worker-main.ts");

/** Throws `unsupported` naming imports of `bun:` and `node:` modules. */
export async function buildForBrowser(entry: string = WORKER_ENTRY): Promise<BrowserBuild> {
  const [hosts, sources]: [string[], string[]] = [[], []];
  const watch: BunPlugin = {
    name: "portable",
    setup(build) {
      build.onResolve({ filter: /^(bun|node)(:|$)/ }, ({ path, importer }) => {
        hosts.push(`${importer} imports ${path}`);
        return { path, external: true };
      });
      build.onLoad({ filter: /\.tsx?$/ }, ({ path }) => void sources.push(path));
      build.onLoad({ filter: /[\\/]page[\\/]engine[\\/]simd-wasm\.ts$/ }, async () => ({
        contents: kernelScript(await Bun.file(programFile(KERNELS)).bytes()),
        loader: "js",
      }));
      build.onLoad({ filter: /\.wgsl$/ }, async ({ path }) => ({
        contents: compact(await Bun.file(path).text()),
        loader: "text",
      }));
    },
  };
  const built = await Bun.build({
    entrypoints: [entry],
    target: "browser",
    minify: true,
    splitting: true,
    external: ["module"], // the grammar library imports it in Node only
    plugins: [watch],
  });
  if (hosts.length > 0) throw new AppError("unsupported", `not for pages: ${hosts.join("; ")}`);
  const outputs = built.outputs.toSorted((a, b) => Number(isEntry(b)) - Number(isEntry(a))); // the entry first
  const scripts = await Promise.all(
    outputs.map(async (output) => ({
      name: output.path.replace(/^.*[\\/]/, ""),
      text: await output.text(),
      isEntry: isEntry(output),
    })),
  );
  const eager = eagerOf(scripts);
  return { scripts: scripts.map((script) => ({ ...script, lazy: !eager.has(script.name) })), sources };
}

const isEntry = ({ kind }: BuildArtifact): boolean => kind === "entry-point";

/** A script that contains the kernels. */
const kernelScript = (bytes: Uint8Array): string =>
  `export const simdWasm = Uint8Array.from(atob("${bytes.toBase64()}"), (each) => each.charCodeAt(0));
   export const simdBuild = "${Bun.hash.xxHash3(bytes).toString(36)}";`;

/** The names of the first script and of its static imports. */
function eagerOf(scripts: readonly { name: string; text: string }[]): Set<string> {
  const eager = new Set<string>();
  const add = (name: string): void => {
    const script = scripts.find((each) => each.name === name);
    if (!script || eager.has(name)) return;
    eager.add(name);
    for (const [, other] of script.text.matchAll(/(?:from|import)\s*"\.\/([^"]+)"/g)) add(other!);
  };
  add(scripts[0]!.name); // the entry
  return eager;
}

/** A kernel without comments and blanks. Lines that `kernels/wgsl/sources.ts` looks for are kept. */
const compact = (wgsl: string): string =>
  wgsl
    .split("\n")
    .map((line) => (/^\/\/#|\/\/ tuned: /.test(line) ? line : compactLine(line)))
    .filter((line) => line !== "")
    .join("\n");

const compactLine = (line: string): string =>
  line
    .replace(/\/\/.*$/, "")
    .trim()
    .replace(/ ?([,;{}()]) ?/g, "$1");
