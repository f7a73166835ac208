#!/usr/bin/env bun
/**
 * Compiles Hearth into one program that needs neither Bun nor Node:
 *
 *   bun packaging/compile.ts [--target linux-x64|linux-arm64|darwin-arm64|darwin-x64|windows-x64] [--out FILE]
 *     [--level 1…22] [--bun FILE]
 *
 * It contains all files that the sources expect beside themselves: Workers as further entries; libraries, the embedded
 * model and the page's parts as files, which the program unpacks on first use (`src/base/program-files.ts`).
 * `--bun` names the target's Bun, where it is on this machine already; else Bun fetches it.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { parseArgs } from "node:util";
import type { BunPlugin } from "bun";
import type { ShippedFile } from "../src/base/shipped.ts";
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
  /** `onnxruntime-node`'s name of the folder. */
  readonly onnx: string;
  /** `webgpu`'s name of the folder. */
  readonly dawn: string;
  /** Prefix of our libraries' names. */
  readonly simd: string;
}

const TARGETS: Readonly<Record<string, Target>> = {
  "linux-x64": { bun: "bun-linux-x64", onnx: "linux/x64", dawn: "linux-x64", simd: "linux-x64" },
  "linux-arm64": { bun: "bun-linux-arm64", onnx: "linux/arm64", dawn: "linux-arm64", simd: "linux-arm64" },
  "darwin-arm64": { bun: "bun-darwin-arm64", onnx: "darwin/arm64", dawn: "darwin-universal", simd: "macos-arm64" },
  "darwin-x64": { bun: "bun-darwin-x64", onnx: "darwin/x64", dawn: "darwin-universal", simd: "macos-x64" },
  "windows-x64": { bun: "bun-windows-x64", onnx: "win32/x64", dawn: "win32-x64", simd: "windows-x64" },
};

/** Files of the source tree that the program needs on a disk. */
async function shippedPaths({ onnx, dawn, simd }: Target): Promise<string[]> {
  const patterns = [
    "models/hearth/{Modelfile,hearth.gguf}",
    `kernels/simd/lib/{SHA256SUMS,KNOWN_ANSWERS,simd.wasm,${simd}*}`,
    `node_modules/onnxruntime-node/bin/napi-v6/${onnx}/{libonnxruntime.so.1,libonnxruntime.1.dylib,*.dll}`,
    "node_modules/webgpu/{package.json,index.js}",
    `node_modules/webgpu/dist/${dawn}/*`,
    "src/gateway/hooks/mapping/transforms/child.toml",
    "node_modules/swagger-ui-dist/{swagger-ui-bundle.js,swagger-ui.css}",
  ];
  const found = patterns.map((pattern) => Array.fromAsync(new Bun.Glob(pattern).scan({ cwd: ROOT, dot: true })));
  return (await Promise.all(found)).flat().toSorted();
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

/** Embeds the files, and tells the program their places. */
function filesInside(files: ReadonlyMap<string, { source: string; isCompressed: boolean }>, id: string): BunPlugin {
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
        const contents = `${imports.join("\n")}\nexport const shipped = { id: "${id}", files: {\n${rows.join(",\n")}\n} };`;
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
    },
  });
  const here = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  const name = values.target ?? here;
  const target = TARGETS[name];
  if (!target) throw new Error(`--target: expected one of ${Object.keys(TARGETS).join(", ")}, got '${name}'`);
  const level = Number(values.level ?? LEVEL);
  if (!Number.isInteger(level) || level < 1 || level > 22)
    throw new Error(`--level: expected an integer from 1 to 22, got '${values.level}'`);
  const out = values.out ?? join(ROOT, "dist", `hearth-${name}`);
  const outfile = name.startsWith("windows") && !out.endsWith(".exe") ? `${out}.exe` : out; // Bun's naming
  mkdirSync(dirname(outfile), { recursive: true });
  const scratch = mkdtempSync(join(tmpdir(), "hearth-compile-"));
  try {
    await compile(target, { outfile, scratch, level, bun: values.bun });
  } finally {
    rmSync(scratch, { recursive: true });
  }
  console.log(`${outfile}: ${(statSync(outfile).size / 1e6).toFixed(0)} MB`);
}

interface CompileOptions {
  readonly outfile: string;
  /** A folder for intermediate files. */
  readonly scratch: string;
  readonly level: number;
  /** The target's Bun; undefined: fetched. */
  readonly bun: string | undefined;
}

async function compile(target: Target, { outfile, scratch, level, bun }: CompileOptions): Promise<void> {
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
  for (const path of await shippedPaths(target)) put(path, readFileSync(join(ROOT, path)));
  put(TRANSFORM_CHILD, await bundledScript(TRANSFORM_CHILD));
  const entries = ["main", ...(await workerEntries())].map((entry) => join(SOURCES, `${entry}.ts`));
  const built = await Bun.build({
    entrypoints: entries,
    root: SOURCES,
    external: ["onnxruntime-node", "@sparticuz/chromium"], // the slow binding, and a package for development
    plugins: [filesInside(files, hash.digest("hex").slice(0, 16)), workersInside, await bakePage(scratch)],
    // parts that a start does not need stay unread, and needed ones are not parsed again
    format: "esm",
    splitting: true,
    bytecode: true,
    compile: {
      target: target.bun,
      outfile,
      autoloadDotenv: false,
      autoloadBunfig: false,
      ...(bun && { executablePath: bun }),
    },
  });
  if (!built.success) throw new Error(built.logs.join("\n"));
}

/** One script with all of its imports. */
async function bundledScript(path: string): Promise<Uint8Array> {
  const built = await Bun.build({ entrypoints: [join(ROOT, path)], target: "bun" });
  if (!built.success) throw new Error(built.logs.join("\n"));
  return new Uint8Array(await built.outputs[0]!.arrayBuffer());
}

await main();
