/** Finds the kernel library for this machine: for its system, at the best level that the processor has. */
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { FEATURES } from "../../../../kernels/simd/layout.ts";
import { messageOf } from "../../../base/index.ts";
import { programFile } from "../../../base/system.ts";
import { missingWasmFeature } from "../wasm/missing-feature.ts";
import { readProcessor, type Processor } from "./processor.ts";

/** In the source tree. */
const LIBRARIES = "kernels/simd/lib";

export const libraryFolder = (): string => programFile(LIBRARIES);

export interface Level {
  /** Name in the settings. */
  readonly level: string;
  /** Displayed name. */
  readonly title: string;
  /** Its kernels multiply prompts with float weights as 16-bit integers: `WORD_PANELS` of products.h. */
  readonly words: boolean;
  /** `PANEL_ROWS` of vec.h. */
  readonly panelRows: number;
  readonly file: string;
  /** Features that the library may use beyond those it is built for: bits of `FEATURES`. */
  readonly features: number;
}

interface Candidate extends Omit<Level, "file"> {
  /** The level whose library runs, if that is built for fewer features. */
  readonly library?: string;
  /** Required processor features, in Linux's spelling. */
  readonly needs: readonly string[];
  /** Systems for which there is such a library; left out: all. */
  readonly systems?: readonly string[];
}

const AVX2 = ["avx2", "fma", "f16c", "bmi1", "bmi2", "movbe"];
const VNNI = [...AVX2, "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd", "avx512_vnni"];
const NEON = ["asimddp", "fphp", "asimdhp"];
/** Best first. */
const LEVELS: Readonly<Record<string, readonly Candidate[]>> = {
  x64: [
    {
      level: "amx",
      title: "AMX",
      words: true,
      panelRows: 32,
      needs: [...VNNI, "amx_tile", "amx_int8"],
      library: "vnni",
      features: FEATURES.amx,
      systems: ["linux"], // where a process asks the kernel for the registers
    },
    {
      level: "vnni",
      title: "AVX-512 VNNI",
      words: true,
      panelRows: 32,
      needs: VNNI,
      features: 0,
      systems: ["linux", "win32"],
    },
    {
      level: "avxvnni",
      title: "AVX-VNNI",
      words: true,
      panelRows: 16,
      needs: [...AVX2, "avx_vnni"],
      library: "avx2",
      features: FEATURES.avxvnni,
    },
    { level: "avx2", title: "AVX2", words: true, panelRows: 16, needs: AVX2, features: 0 },
    {
      level: "sse41",
      title: "SSE 4.1",
      words: false,
      panelRows: 8,
      needs: ["ssse3", "sse4_1"],
      features: 0,
      systems: ["linux", "win32"], // every Mac that Bun runs on has AVX2
    },
  ],
  arm64: [
    {
      level: "i8mm",
      title: "NEON with I8MM",
      words: false,
      panelRows: 8,
      needs: [...NEON, "i8mm"],
      library: "neon",
      features: FEATURES.i8mm,
    },
    { level: "neon", title: "NEON", words: false, panelRows: 8, needs: NEON, features: 0 },
    // the Raspberry Pi 4 and older boards
    {
      level: "neon80",
      title: "NEON of Armv8.0",
      words: false,
      panelRows: 8,
      needs: ["asimd"],
      features: 0,
      systems: ["linux"],
    },
  ],
};
const PLATFORMS: Readonly<Record<string, { name: string; ending: string }>> = {
  linux: { name: "linux", ending: "so" },
  darwin: { name: "macos", ending: "dylib" },
  win32: { name: "windows", ending: "dll" },
};

/** In place of a level: no library may run, only the kernels as WebAssembly. */
export const WASM_LEVEL = "wasm";
/** In place of a level: not even those may run, because they failed their self-test too. */
export const NO_LEVEL = "none";

export interface LevelOptions {
  /** Undefined: the best. */
  readonly level?: string | undefined;
  readonly folder?: string | undefined;
}

/** Facts about a machine that decide which levels it can run. */
export interface MachineFacts extends Processor {
  /** As in `process`. */
  readonly platform: string;
  readonly arch: string;
}

/** The levels that this machine can run, best first. */
export function levelsHere(folder: string = libraryFolder()): Level[] {
  const { platform, arch } = process;
  const files = builtFor({ platform, arch }, folder).map(({ file }) => file);
  if (files.length === 0) return [];
  const processor = readProcessor(() => files.find((file) => damageOf(file) === undefined));
  return levelsOf({ platform, arch, ...processor }, folder);
}

/** The levels that such a machine can run, best first. */
export function levelsOf({ has, halves, ...system }: MachineFacts, folder: string = libraryFolder()): Level[] {
  return builtFor(system, folder)
    .filter(({ needs }) => needs.every((feature) => has.has(feature)))
    .map(({ level, title, words, panelRows, features, file }) => {
      return { level, title, words, panelRows, features: features | (halves ? FEATURES.halves : 0), file };
    });
}

/** The levels that have a library for a system, best first. */
function builtFor(
  { platform, arch }: Pick<MachineFacts, "platform" | "arch">,
  folder: string,
): (Candidate & { readonly file: string })[] {
  const system = PLATFORMS[platform];
  if (!system) return [];
  const fileOf = ({ level, library = level }: Candidate): string => {
    const parts = [system.name, arch, ...(library === "neon" ? [] : [library])];
    return join(folder, `${parts.join("-")}.${system.ending}`);
  };
  return (LEVELS[arch] ?? [])
    .filter(({ systems }) => systems?.includes(platform) ?? true)
    .map((each) => ({ ...each, file: fileOf(each) }));
}

/** The level to run, whose library is undamaged, or the reason why no level can run. */
export function findLevel({ level, folder = libraryFolder() }: LevelOptions = {}): Level | { reason: string } {
  if (level === NO_LEVEL || level === WASM_LEVEL) {
    return { reason: "no kernel library passed its self-test: see 'hearth selftest'" };
  }
  const here = levelsHere(folder);
  const wanted = level === undefined ? here : here.filter((each) => each.level === level);
  const sound = wanted.find(({ file }) => damageOf(file) === undefined);
  if (sound) return sound;
  const [best] = wanted;
  if (best) return { reason: damageOf(best.file)! }; // the library was found, but it is damaged
  const has = here.map((each) => each.level).join(", ") || "none";
  const which = level === undefined ? "" : ` of level '${level}'`;
  return { reason: `no kernels${which} here: this machine has ${has} (${process.platform}, ${process.arch})` };
}

/** The kernels as WebAssembly. */
export const wasmFile = (folder: string = libraryFolder()): string => join(folder, "simd.wasm");

/** The kernels as WebAssembly, as a level for the self-test; undefined if this engine lacks a feature. */
export function wasmLevel(folder: string = libraryFolder()): Level | undefined {
  if (missingWasmFeature() !== undefined) return undefined;
  return { level: WASM_LEVEL, title: "WebAssembly", words: false, panelRows: 8, features: 0, file: wasmFile(folder) };
}

/** The reason why the kernels as WebAssembly cannot be read; undefined if they can. */
export const wasmDamage = (folder?: string): string | undefined => damageOf(wasmFile(folder));

/** The error of a library that does not match its checksum; undefined if it matches. */
export function damageOf(file: string): string | undefined {
  try {
    const expected = listed(file, "SHA256SUMS");
    const got = new Bun.CryptoHasher("sha256").update(readFileSync(file)).digest("hex");
    if (got === expected) return undefined;
    return `${file}: damaged: expected SHA-256 ${expected ?? "in SHA256SUMS"}, got ${got}`;
  } catch (error) {
    return `kernels cannot be read: ${messageOf(error)}`;
  }
}

/** The expected result of a library's self-test, in hex; undefined if no list has a line for it. */
export function knownAnswer(file: string): string | undefined {
  try {
    return listed(file, "KNOWN_ANSWERS");
  } catch {
    return undefined; // the list is missing
  }
}

/** The hash of a library in a list beside it, written as sha256sum does. */
function listed(file: string, list: string): string | undefined {
  const lines = readFileSync(join(dirname(file), list), "utf8").split("\n");
  return lines.map((line) => line.trim().split(/ +/)).find((parts) => parts[1] === basename(file))?.[0];
}
