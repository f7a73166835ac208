#!/usr/bin/env bun
/**
 * Compiles Hearth into one program that needs neither Bun nor Node:
 *
 *   bun packaging/compile.ts [--target linux-x64|linux-arm64|darwin-arm64|windows-x64|…] [--out FILE]
 *     [--level 1…22] [--bun FILE] [--without onnx,gpu] [--release-url URL] [--release-key KEY]
 *
 * It contains all files that the sources expect beside themselves: Workers as further entries; libraries, the embedded
 * model and the page's parts as files, which the program unpacks on first use (`src/base/program-files.ts`).
 * `--bun` names the target's Bun, where it is on this machine already; else Bun fetches it. A program `--without` the
 * GPU library fetches it with `hearth update --gpu`. The address and key are what `hearth update` uses.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { parseArgs } from "node:util";
import type { BunPlugin } from "bun";
import type { Shipped, ShippedFile } from "../src/base/shipped.ts";
import { bakePage } from "../src/page/bake.ts";

const ROOT = join(import.meta.dir, "..");
const SOURCES = join(ROOT, "src");
/** Larger files are compressed inside the program, if that saves at least a tenth. */
const COMPRESS_FROM_BYTES = 1024 * 1024;
const WORTH_RATIO = 0.9;
/** Zstandard level: 3 takes a quarter of the time and makes the program 2 % larger. */
const LEVEL = 12;
const TRANSFORM_CHILD = "src/gateway/hooks/mapping/transforms/child.ts";

interface Target {
  readonly bun: Bun.Build.CompileTarget;
  /** `onnxruntime-node`'s name of the folder; absent: it has no library for this target. */
  readonly onnx?: string;
  /** `webgpu`'s name of the folder; absent: it has no library for this target. */
  readonly dawn?: string;
  /** Prefix of our libraries' names. */
  readonly simd: string;
}

/** Bun's programs for Intel Macs keep a signature that compiling breaks: macOS ends them. They run from source. */
export const TARGETS: Readonly<Record<string, Target>> = {
  "linux-x64": { bun: "bun-linux-x64", onnx: "linux/x64", dawn: "linux-x64", simd: "linux-x64" },
  "linux-arm64": { bun: "bun-linux-arm64", onnx: "linux/arm64", dawn: "linux-arm64", simd: "linux-arm64" },
  // ONNX Runtime and Dawn want glibc
  "linux-x64-musl": { bun: "bun-linux-x64-musl", simd: "linux-x64" },
  "linux-arm64-musl": { bun: "bun-linux-arm64-musl", simd: "linux-arm64" },
  "darwin-arm64": { bun: "bun-darwin-arm64", onnx: "darwin/arm64", dawn: "darwin-universal", simd: "macos-arm64" },
  "windows-x64": { bun: "bun-windows-x64", onnx: "win32/x64", dawn: "win32-x64", simd: "windows-x64" },
  "windows-arm64": { bun: "bun-windows-arm64", onnx: "win32/arm64", dawn: "win32-arm64", simd: "windows-arm64" },
};

/** The files of the package `webgpu` that a target needs. */
export const dawnPaths = (dawn: string): string[] => [
  "node_modules/webgpu/{package.json,index.js,LICENSE.md}",
  `node_modules/webgpu/dist/${dawn}/*`,
];

/** Files of the repository whose paths fit one of the patterns, in order of name. */
export async function pathsOf(patterns: readonly string[]): Promise<string[]> {
  const found = patterns.map((pattern) => Array.fromAsync(new Bun.Glob(pattern).scan({ cwd: ROOT, dot: true })));
  return (await Promise.all(found)).flat().toSorted();
}

/** Parts that a program may be made without. */
const PARTS = ["onnx", "gpu"] as const;
type Part = (typeof PARTS)[number];

/** Files of the source tree that the program needs on a disk. */
function shippedPaths({ onnx, dawn, simd }: Target, without: readonly Part[]): Promise<string[]> {
  return pathsOf([
    "models/hearth/{Modelfile,hearth.gguf}",
    `kernels/simd/lib/{SHA256SUMS,KNOWN_ANSWERS,simd.wasm,quantize.wasm,${simd}*}`,
    ...(onnx && !without.includes("onnx")
      ? [`node_modules/onnxruntime-node/bin/napi-v6/${onnx}/{libonnxruntime.so.1,libonnxruntime.1.dylib,*.dll}`]
      : []),
    ...(dawn && !without.includes("gpu") ? dawnPaths(dawn) : []),
    "src/gateway/hooks/mapping/transforms/child.toml",
    "node_modules/swagger-ui-dist/{swagger-ui-bundle.js,swagger-ui.css}",
  ]);
}

/** Source files that run as Workers, relative to `src/`. */
async function workerEntries(): Promise<string[]> {
  const sources = await Array.fromAsync(new Bun.Glob("**/*.ts").scan({ cwd: SOURCES }));
  const entries = sources
    .filter((path) => !path.startsWith("page/"))
    .flatMap((path) =>
      [...readFileSync(join(SOURCES, path), "utf8").matchAll(WORKER)].map(([, name]) => join(dirname(path), name!)),
    );
  return [...new Set(entries)].toSorted();
}

const WORKER = /new Worker\(new URL\("(\.[^"]+)\.ts", import\.meta\.url\)/g;

/** In a compiled program an entry's path is relative to `src/`, beside the main one. */
const workersInside: BunPlugin = {
  name: "workers",
  setup(build) {
    build.onLoad({ filter: /[\\/]src[\\/](?!page).*\.ts$/ }, async ({ path }) => {
      const text = await Bun.file(path).text();
      const folder = relative(SOURCES, dirname(path));
      const contents = text.replace(
        WORKER,
        (_, name: string) =>
          `new Worker(Bun.main.replace(/[^\\/\\\\]*$/, "") + ${JSON.stringify(`${join(folder, name)}.js`)}`,
      );
      return { contents, loader: "ts" };
    });
  },
};

interface Inside {
  readonly files: ReadonlyMap<string, { source: string; isCompressed: boolean }>;
  /** All of `Shipped` but the files. */
  readonly about: Omit<Shipped, "files">;
}

/** Embeds the files, and gives the program their places. */
function filesInside({ files, about }: Inside): BunPlugin {
  return {
    name: "files",
    setup(build) {
      build.onLoad({ filter: /[\\/]src[\\/]base[\\/]shipped\.ts$/ }, () => {
        const entries = [...files].map(([path, file], i) => ({ path, ...file, name: `file${i}` }));
        const imports = entries.map(
          ({ source, name }) => `import ${name} from ${JSON.stringify(source)} with { type: "file" };`,
        );
        const rows = entries.map(({ path, name, isCompressed }) => {
          const row: Record<keyof ShippedFile, string> = { inside: name, isCompressed: `${isCompressed}` };
          return `${JSON.stringify(path)}: { inside: ${row.inside}, isCompressed: ${row.isCompressed} }`;
        });
        const rest = JSON.stringify(about);
        const contents = `${imports.join("\n")}\nexport const shipped = { ...${rest}, files: {\n${rows.join(",\n")}\n} };`;
        return { contents, loader: "js" };
      });
      // Dawn's binding is loaded by path: the package runs from its unpacked folder
      build.onResolve({ filter: /^webgpu$/ }, () => ({ path: "webgpu", namespace: "unpacked" }));
      build.onLoad({ filter: /^webgpu$/, namespace: "unpacked" }, () => ({
        contents: `import { packageFolder } from ${JSON.stringify(join(SOURCES, "base/program-files.ts"))};
          export const { create, globals } = await import(packageFolder("webgpu") + "/index.js");`,
        loader: "js",
      }));
    },
  };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      target: { type: "string" },
      out: { type: "string" },
      level: { type: "string" },
      bun: { type: "string" },
      without: { type: "string" },
      "release-url": { type: "string" },
      "release-key": { type: "string" },
    },
  });
  const here = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  const target = values.target ?? here;
  const without = (values.without?.split(",") ?? []) as Part[]; // checked below
  const unknown = without.find((part) => !PARTS.includes(part));
  if (unknown !== undefined) throw new Error(`--without: expected ${PARTS.join(" or ")}, got '${unknown}'`);
  const out = await compile({
    target,
    out: values.out ?? join(ROOT, "dist", `hearth-${target}`),
    level: Number(values.level ?? LEVEL),
    bun: values.bun,
    without,
    release: { ...onlyGiven("url", values["release-url"]), ...onlyGiven("key", values["release-key"]) },
  });
  console.log(`${out}: ${(statSync(out).size / 1e6).toFixed(0)} MB`);
}

const onlyGiven = (name: string, value: string | undefined) => (value === undefined ? {} : { [name]: value });

export interface CompileOptions {
  readonly target: string;
  readonly out: string;
  /** Zstandard level of the files inside. */
  readonly level?: number;
  /** The target's Bun; undefined: fetched. */
  readonly bun?: string | undefined;
  readonly without?: readonly Part[];
  readonly release?: NonNullable<Shipped["release"]>;
}

/** Returns the program's path, which ends in `.exe` for Windows. */
export async function compile(options: CompileOptions): Promise<string> {
  const { target, out, level = LEVEL } = options;
  if (!TARGETS[target])
    throw new Error(`--target: expected one of ${Object.keys(TARGETS).join(", ")}, got '${target}'`);
  if (!Number.isInteger(level) || level < 1 || level > 22)
    throw new Error(`--level: expected an integer from 1 to 22, got '${level}'`);
  const outfile = target.startsWith("windows") && !out.endsWith(".exe") ? `${out}.exe` : out; // Bun's naming
  mkdirSync(dirname(outfile), { recursive: true });
  const scratch = mkdtempSync(join(tmpdir(), "hearth-compile-"));
  try {
    await build({ ...options, level, outfile, scratch });
  } finally {
    rmSync(scratch, { recursive: true });
  }
  return outfile;
}

interface BuildOptions extends CompileOptions {
  readonly level: number;
  readonly outfile: string;
  /** A folder for intermediate files. */
  readonly scratch: string;
}

async function build({ target, outfile, scratch, level, bun, without = [], release }: BuildOptions): Promise<void> {
  const row = TARGETS[target]!;
  const hash = new Bun.CryptoHasher("sha256");
  const files = new Map<string, { source: string; isCompressed: boolean }>();
  const put = (path: string, bytes: Uint8Array): void => {
    const packed = bytes.length >= COMPRESS_FROM_BYTES ? Bun.zstdCompressSync(bytes, { level }) : bytes;
    const isCompressed = packed.length < WORTH_RATIO * bytes.length;
    const source = join(scratch, `${files.size}-${basename(path)}${isCompressed ? ".zst" : ".bin"}`);
    hash.update(path).update(bytes);
    writeFileSync(source, isCompressed ? packed : bytes);
    files.set(path, { source, isCompressed });
  };
  for (const path of await shippedPaths(row, without)) put(path, readFileSync(join(ROOT, path)));
  put(TRANSFORM_CHILD, await bundledScript(TRANSFORM_CHILD));
  const about = {
    id: hash.digest("hex").slice(0, 16),
    target,
    ...(row.dawn && without.includes("gpu") && { apart: { webgpu: dawnVersion() } }),
    ...(release && { release }),
  };
  const entries = ["main", ...(await workerEntries())].map((entry) => join(SOURCES, `${entry}.ts`));
  const built = await Bun.build({
    entrypoints: entries,
    root: SOURCES,
    external: ["onnxruntime-node", "@sparticuz/chromium"], // the slow binding, and a package for development
    plugins: [filesInside({ files, about }), workersInside, await bakePage(scratch)],
    // parts that a start does not need stay unread, and needed ones are not parsed again
    format: "esm",
    splitting: true,
    bytecode: true,
    compile: {
      target: row.bun,
      outfile,
      autoloadDotenv: false,
      autoloadBunfig: false,
      ...(bun && { executablePath: bun }),
    },
  });
  if (!built.success) throw new Error(built.logs.join("\n"));
}

/** The exact version of the package `webgpu`. */
export const dawnVersion = (): string =>
  (JSON.parse(readFileSync(join(ROOT, "node_modules/webgpu/package.json"), "utf8")) as { version: string }).version;

/** One script with all of its imports. */
async function bundledScript(path: string): Promise<Uint8Array> {
  const built = await Bun.build({ entrypoints: [join(ROOT, path)], target: "bun" });
  if (!built.success) throw new Error(built.logs.join("\n"));
  return new Uint8Array(await built.outputs[0]!.arrayBuffer());
}

if (import.meta.main) await main();
