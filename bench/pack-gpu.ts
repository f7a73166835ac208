/**
 * Packs everything that gpu.ts needs on a Linux machine (x86_64) with a GPU and its driver: this runtime, Hearth's
 * sources, Dawn, ONNX Runtime, llama.cpp's Vulkan build and a Vulkan loader.
 *
 *   bun bench/pack-gpu.ts [--out FILE.tar.xz] [--without llama,onnx] [--lean]
 *
 * There: `tar xf FILE.tar.xz && hearth-gpu/run [arguments of bench/gpu.ts]`; the results are in
 * hearth-gpu/results.json. Needs `tar` and `xz`, and minutes, because it uses xz's highest level. Prints the archive's
 * size; without llama and onnx it is two thirds.
 *
 * With --lean it has only the things that the machine needs in addition to a copy of this tree, in at most 45 MiB: the
 * runtime, Dawn, the loader, and packages of tests. There, in the tree: `tar xf FILE.tar.xz -C /tmp &&
 * /tmp/hearth-gpu/run bench/gpu-probe.ts`, or `run test FILE`.
 */
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import { parseArgs } from "node:util";

const ROOT = join(import.meta.dir, "..");
const MIB_MAX = { whole: 64, lean: 45 };
/** Packages that the GPU backend and its tests load. */
const LEAN_PACKAGES = ["webgpu", "fast-check", "pure-rand"];
const LLAMA = "bench/node_modules/@node-llama-cpp/linux-x64-vulkan";
/** Files of packages for other machines, builds and compilers. */
const LEFT_OUT = [
  /node_modules\/@node-llama-cpp\/(?!linux-x64-vulkan)/,
  /node_modules\/node-llama-cpp\/llama\/.*(?<!\.json)$/,
  /node_modules\/webgpu\/dist\/(?!linux-x64)/,
  /node_modules\/onnxruntime-node\/bin\/napi-v\d+\/(?!linux(\/x64|$))/,
  // Processors with a llama.cpp build of their own, which rarely accompany GPUs.
  /libggml-cpu-(alderlake|cannonlake|cascadelake|cooperlake|ivybridge|piledriver|sandybridge|sse42)\.so$/,
];

const RUN = `#!/bin/sh
cd "$(dirname "$0")" || exit
ldconfig -p 2>/dev/null | grep -q 'libvulkan\\.so\\.1' || export LD_LIBRARY_PATH="$PWD/lib:$LD_LIBRARY_PATH"
exec ./bun bench/gpu.ts --json results.json "$@"
`;

/** Starts a command in a tree without packages. */
const RUN_LEAN = `#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
[ -e node_modules ] || ln -s "$here/node_modules" node_modules
ldconfig -p 2>/dev/null | grep -q 'libvulkan\\.so\\.1' || export LD_LIBRARY_PATH="$here/lib:$LD_LIBRARY_PATH"
exec "$here/bun" "$@"
`;

const { values: flags } = parseArgs({
  options: {
    out: { type: "string", default: join(import.meta.dir, "out", "hearth-gpu.tar.xz") },
    without: { type: "string", default: "" },
    lean: { type: "boolean", default: false },
    quick: { type: "boolean", default: false }, // low compression, to test the archive
  },
});

const without = new Set(flags.without.split(",").filter(Boolean));
for (const name of without)
  if (name !== "llama" && name !== "onnx") throw new Error(`--without: expected llama or onnx, got '${name}'`);
if (process.platform !== "linux" || process.arch !== "x64") throw new Error("packs what runs here: Linux on x86_64");

const work = mkdtempSync(join(tmpdir(), "hearth-pack-"));
try {
  const folder = join(work, "hearth-gpu");
  await fill(folder);
  mkdirSync(dirname(flags.out), { recursive: true });
  const level = flags.quick ? "--lzma2=preset=0" : "--lzma2=preset=9e,dict=192MiB";
  const tar = Bun.spawn(["tar", "cf", "-", "-C", work, "hearth-gpu"], { stdout: "pipe" });
  const xz = Bun.spawn(["xz", "--x86", level, "-T1", "-c"], { stdin: tar.stdout, stdout: Bun.file(flags.out) });
  if ((await tar.exited) !== 0 || (await xz.exited) !== 0) throw new Error("tar or xz failed");
} finally {
  rmSync(work, { recursive: true });
}
const mib = statSync(flags.out).size / 2 ** 20;
const most = MIB_MAX[flags.lean ? "lean" : "whole"];
console.log(`${flags.out}: ${mib.toFixed(1)} MiB${mib > most ? `, more than ${most}` : ""}`);

async function fill(folder: string): Promise<void> {
  if (flags.lean) for (const name of LEAN_PACKAGES) copy(join("node_modules", name), folder);
  else copyAll(folder);
  const archive = Bun.file(join(ROOT, "node_modules/@sparticuz/chromium/bin/swiftshader.tar.br"));
  const files = await new Bun.Archive(brotliDecompressSync(await archive.bytes())).files("libvulkan.so.1");
  const loader = files.get("libvulkan.so.1");
  if (!loader) throw new Error("no libvulkan.so.1 in the test browser's package");
  mkdirSync(join(folder, "lib"));
  writeFileSync(join(folder, "lib/libvulkan.so.1"), await loader.bytes());
  cpSync(process.execPath, join(folder, "bun"), { dereference: true });
  writeFileSync(join(folder, "run"), flags.lean ? RUN_LEAN : RUN);
  for (const program of ["bun", "run"]) chmodSync(join(folder, program), 0o755);
}

function copyAll(folder: string): void {
  for (const path of ["src", "kernels", "package.json", "tsconfig.json", "test/conformance/weights.ts"])
    copy(path, folder);
  for (const name of new Bun.Glob("*.ts").scanSync(import.meta.dir)) copy(join("bench", name), folder);
  for (const name of ["webgpu", ...(without.has("onnx") ? [] : ["onnxruntime-node", "onnxruntime-common"])])
    copy(join("node_modules", name), folder);
  if (!without.has("llama")) {
    if (!existsSync(join(ROOT, LLAMA)))
      throw new Error(`${LLAMA}: not there; bun install --cwd bench, or --without llama`);
    copy("bench/node_modules", folder);
  }
}

function copy(path: string, folder: string): void {
  const filter = (source: string): boolean => !LEFT_OUT.some((each) => each.test(relative(ROOT, source)));
  cpSync(join(ROOT, path), join(folder, path), { recursive: true, dereference: true, filter });
}
