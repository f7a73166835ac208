/** The libraries: the one that runs here, and that each matches its source. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { layoutHeader } from "../../../../kernels/simd/layout.ts";
import { SETTINGS } from "../../../../src/base/config/settings.ts";
import { sleepFunctions } from "../../../../src/engine/backends/host/sleep-functions.ts";
import { quantizeModule } from "../../../../src/engine/backends/host/quantize-module.ts";
import { findLevel, levelsHere, libraryFolder, wasmDamage } from "../../../../src/engine/backends/host/simd-library.ts";
import { checkBackend } from "../../../../src/engine/backends/index.ts";
import { drawn } from "../../../seed.ts";

const KERNELS = resolve(import.meta.dir, "../../../../kernels/simd");
const BYTES_MAX = 1.99e6;
/** The limit for the quantizers, which only `create` and `quantize` load. */
const QUANTIZE_BYTES_MAX = 40_000;
const folder = mkdtempSync(join(tmpdir(), "hearth-simd-"));
afterAll(() => rmSync(folder, { recursive: true }));

const libraries = (of: string): string[] => readdirSync(of).filter((name) => /\.(so|dylib|dll|wasm)$/.test(name));

test("layout.h is the output of layout.ts", () => {
  expect(readFileSync(join(KERNELS, "layout.h"), "utf8")).toBe(layoutHeader());
});

test("every library is listed with its checksum, and all libraries together stay below the size limit", () => {
  const sums = readFileSync(join(libraryFolder(), "SHA256SUMS"), "utf8").trim().split("\n");
  expect(sums.map((line) => line.split(/ +/)[1]!).toSorted()).toEqual(libraries(libraryFolder()).toSorted());
  const bytes = { pass: 0, quantize: 0 };
  for (const line of sums) {
    const [sum, name] = line.split(/ +/) as [string, string]; // the format of sha256sum
    const library = readFileSync(join(libraryFolder(), name));
    expect(new Bun.CryptoHasher("sha256").update(library).digest("hex"), name).toBe(sum);
    bytes[name === "quantize.wasm" ? "quantize" : "pass"] += library.length;
  }
  expect(bytes.pass).toBeLessThan(BYTES_MAX);
  expect(bytes.quantize).toBeLessThan(QUANTIZE_BYTES_MAX);
});

/** Other releases give other bytes. */
const COMPILER = "19.1.7";
const hasCompiler =
  Bun.which("ld.lld-19") !== null &&
  Bun.which("clang-19") !== null &&
  Bun.spawnSync(["clang-19", "--version"]).stdout.toString().includes(`version ${COMPILER} `);
/** A run builds some of them by its seed: they share most of their source, so a change affects most of them. */
const built = drawn("libraries of kernels", libraries(libraryFolder()), 1);
test.skipIf(!hasCompiler)(
  `the source gives the same bytes again (clang-19 and lld-19 ${COMPILER}): ${built.join(", ")}`,
  () => {
    const names = built.map((name) => name.replace(/\.\w+$/, ""));
    const build = Bun.spawnSync([join(KERNELS, "build.sh"), folder, ...names], { stdio: ["ignore", "ignore", "pipe"] });
    expect(build.stderr.toString()).toBe("");
    expect(libraries(folder).toSorted()).toEqual(built.toSorted());
    for (const name of built) {
      const same = readFileSync(join(folder, name)).equals(readFileSync(join(libraryFolder(), name)));
      expect(same, `${name} is not what the source makes: run kernels/simd/build.sh`).toBe(true);
    }
  },
  300_000,
);

test("a level can be chosen by name, and an unknown level is refused", () => {
  for (const { level, file } of levelsHere()) expect(findLevel({ level })).toMatchObject({ level, file });
  expect(findLevel({ level: "sse9" })).toEqual({
    reason: expect.stringMatching(/^no kernels of level 'sse9' here: this machine has /),
  });
});

test("a library that is missing or damaged is refused by name", () => {
  const [best] = levelsHere();
  if (!best) return;
  const name = best.file.split("/").at(-1)!;
  expect(findLevel({ folder: join(folder, "nowhere") })).toEqual({ reason: expect.stringMatching(/cannot be read/) });
  const damaged = mkdtempSync(join(folder, "damaged-"));
  writeFileSync(join(damaged, "SHA256SUMS"), readFileSync(join(libraryFolder(), "SHA256SUMS")));
  const bytes = readFileSync(best.file);
  bytes[1000]! ^= 1;
  writeFileSync(join(damaged, name), bytes);
  const refused = findLevel({ folder: damaged, level: best.level });
  expect(refused).toEqual({ reason: expect.stringContaining(`${name}: damaged: expected SHA-256 `) });
});

test("a setting with a level that this machine lacks is refused", () => {
  const elsewhere = process.arch === "x64" ? "neon" : "vnni";
  const refusal = new RegExp(`^HEARTH_SIMD=${elsewhere}: no kernels of level '${elsewhere}' here: this machine has `);
  expect(() => checkBackend("auto", elsewhere)).toThrow(refusal);
  if (levelsHere().length > 0) expect(() => checkBackend("simd", elsewhere)).toThrow(refusal);
  expect(() => checkBackend("cpu", elsewhere)).not.toThrow();
  for (const { level } of levelsHere()) expect(() => checkBackend("auto", level)).not.toThrow();
});

test("missing or damaged WebAssembly kernels are reported before a model is loaded", () => {
  expect(wasmDamage()).toBeUndefined();
  expect(wasmDamage(join(folder, "nowhere"))).toMatch(/cannot be read/);
  const damaged = mkdtempSync(join(folder, "damaged-"));
  writeFileSync(join(damaged, "SHA256SUMS"), readFileSync(join(libraryFolder(), "SHA256SUMS")));
  const bytes = readFileSync(join(libraryFolder(), "simd.wasm"));
  bytes[5000]! ^= 1;
  writeFileSync(join(damaged, "simd.wasm"), bytes);
  expect(wasmDamage(damaged)).toMatch(/simd\.wasm: damaged: expected SHA-256 /);
});

test("missing or damaged quantizers are refused by name, and quantizers that cannot compile are not used", () => {
  expect(quantizeModule()).toBeInstanceOf(WebAssembly.Module);
  expect(() => quantizeModule(join(folder, "nowhere"))).toThrow(/cannot be read/);
  const other = mkdtempSync(join(folder, "other-"));
  writeFileSync(join(other, "SHA256SUMS"), readFileSync(join(libraryFolder(), "SHA256SUMS")));
  writeFileSync(join(other, "quantize.wasm"), "not WebAssembly");
  expect(() => quantizeModule(other)).toThrow(/quantize\.wasm: damaged: expected SHA-256 /);
  // like an engine that lacks a feature of the module
  const sum = new Bun.CryptoHasher("sha256").update("not WebAssembly").digest("hex");
  writeFileSync(join(other, "SHA256SUMS"), `${sum}  quantize.wasm\n`);
  expect(quantizeModule(other)).toBeUndefined();
});

/** Positions at which code allocates frames larger than a page at once. */
function largeFrames(code: Buffer, arch: string): number {
  let count = 0;
  if (arch === "x64") {
    const subtract = Buffer.from([0x48, 0x81, 0xec]); // sub rsp, imm32
    for (let at = code.indexOf(subtract); at >= 0; at = code.indexOf(subtract, at + 1))
      if (code.readInt32LE(at + 3) >= 4096) count++;
    return count;
  }
  const subtractPages = 0xd14003ff; // sub sp, sp, imm12, lsl 12
  for (let at = 0; at + 4 <= code.length; at += 4)
    if ((code.readUInt32LE(at) & 0xffc003ff) >>> 0 === subtractPages) count++;
  return count;
}

test.each(libraries(libraryFolder()).filter((name) => name.endsWith(".dll")))(
  "%s: every frame larger than a page is probed: Windows adds pages to a stack one at a time",
  (name) => {
    const arch = name.includes("arm64") ? "arm64" : "x64";
    expect(largeFrames(readFileSync(join(libraryFolder(), name)), arch)).toBe(0);
    const onLinux = name.replace("windows", "linux").replace(".dll", ".so");
    expect(largeFrames(readFileSync(join(libraryFolder(), onLinux)), arch)).toBeGreaterThan(0); // without probes
  },
);

test("sleep functions are looked up only on systems whose kernels cannot call them", () => {
  expect(sleepFunctions("linux")).toBeUndefined();
  expect(sleepFunctions("freebsd")).toBeUndefined();
  if (process.platform === "win32") expect(sleepFunctions()).toBeDefined();
});

test("the setting for a level accepts the level of every shipped library", () => {
  const levels = readdirSync(libraryFolder()).flatMap((name) => {
    const [, arch, level] = /^\w+-(x64|arm64)-?(\w*)\.(?:so|dylib|dll)$/.exec(name) ?? [];
    return arch === undefined ? [] : [level || "neon"]; // the plain library of arm64
  });
  for (const level of new Set(levels)) expect(SETTINGS.simd.parse(level), level).toBe(level as never);
});
