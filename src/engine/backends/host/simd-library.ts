/** Chooses the kernel library for this machine: its platform's, at the processor's best level. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { FEATURES } from "../../../../kernels/simd/layout.ts";
import { messageOf } from "../../../base/index.ts";
import { programFile } from "../../../base/system.ts";

/** In the source tree. */
const LIBRARIES = "kernels/simd/lib";

export const libraryFolder = (): string => programFile(LIBRARIES);

export interface Level {
  /** Name in the settings. */
  readonly level: string;
  /** Name for people. */
  readonly title: string;
  /** Its kernels multiply prompts with float weights as 16-bit integers: `WORD_PANELS` of products.h. */
  readonly words: boolean;
  readonly file: string;
  /** Features that the library may use beyond its build target: `FEATURES`. */
  readonly features: number;
}

interface Candidate extends Omit<Level, "file"> {
  /** The library's level, if it was built for a lower one. */
  readonly library?: string;
  /** Required processor features, in Linux's spelling. */
  readonly needs: readonly string[];
}

const AVX2 = ["avx2", "fma", "f16c", "bmi1", "bmi2", "movbe"];
const VNNI = [...AVX2, "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd", "avx512_vnni"];
const NEON = ["asimddp", "fphp", "asimdhp"];
/** Best first. */
const LEVELS: Readonly<Record<string, readonly Candidate[]>> = {
  x64: [
    { level: "vnni", title: "AVX-512 VNNI", words: true, needs: VNNI, features: 0 },
    {
      level: "avxvnni",
      title: "AVX-VNNI",
      words: true,
      needs: [...AVX2, "avx_vnni"],
      library: "avx2",
      features: FEATURES.avxvnni,
    },
    { level: "avx2", title: "AVX2", words: true, needs: AVX2, features: 0 },
  ],
  arm64: [
    {
      level: "i8mm",
      title: "NEON with I8MM",
      words: false,
      needs: [...NEON, "i8mm"],
      library: "neon",
      features: FEATURES.i8mm,
    },
    { level: "neon", title: "NEON", words: false, needs: NEON, features: 0 },
  ],
};
/** Linux only: other systems have no file that lists the processor's features, and the libraries never ran there. */
const PLATFORMS: Readonly<Record<string, { name: string; ending: string }>> = {
  linux: { name: "linux", ending: "so" },
};

export interface LevelOptions {
  /** Undefined: the best. */
  readonly level?: string | undefined;
  readonly folder?: string | undefined;
}

/** The levels that this machine can run, best first. */
export function levelsHere(folder: string = libraryFolder()): Level[] {
  const platform = PLATFORMS[process.platform];
  const candidates = LEVELS[process.arch];
  if (!platform || !candidates) return [];
  const { has, halves } = readProcessor();
  return candidates
    .filter(({ needs }) => needs.every((feature) => has.has(feature)))
    .map(({ level, title, words, library = level, features: own }) => {
      const parts = [platform.name, process.arch, ...(library === "neon" ? [] : [library])];
      const features = own | (halves ? FEATURES.halves : 0);
      return { level, title, words, features, file: join(folder, `${parts.join("-")}.${platform.ending}`) };
    });
}

/** The level to run, with a checked library, or the reason why there is no usable level. */
export function findLevel({ level, folder = libraryFolder() }: LevelOptions = {}): Level | { reason: string } {
  const here = levelsHere(folder);
  const found = level === undefined ? here[0] : here.find((each) => each.level === level);
  if (!found) {
    const has = here.map((each) => each.level).join(", ") || "none";
    const which = level === undefined ? "" : ` of level '${level}'`;
    return { reason: `no kernels${which} here: this machine has ${has} (${process.platform}, ${process.arch})` };
  }
  const reason = damageOf(found.file, folder);
  return reason === undefined ? found : { reason };
}

/** Why the WebAssembly kernels cannot be read; undefined: they can. */
export const wasmDamage = (folder: string = libraryFolder()): string | undefined =>
  damageOf(join(folder, "simd.wasm"), folder);

/** The problem of a library by its checksum; undefined: intact. */
function damageOf(file: string, folder: string): string | undefined {
  try {
    const name = file.slice(folder.length + 1);
    const sums = readFileSync(join(folder, "SHA256SUMS"), "utf8").trim().split("\n");
    const expected = sums.map((line) => line.split(/ +/)).find((parts) => parts[1] === name)?.[0];
    const got = new Bun.CryptoHasher("sha256").update(readFileSync(file)).digest("hex");
    return got === expected
      ? undefined
      : `${file}: damaged: expected SHA-256 ${expected ?? "in SHA256SUMS"}, got ${got}`;
  } catch (error) {
    return `kernels cannot be read: ${messageOf(error)}`;
  }
}

interface Processor {
  /** Processor features, in Linux's spelling. */
  readonly has: ReadonlySet<string>;
  /** True for processors that read two streams of memory faster than one: Intel's, by measurement. */
  readonly halves: boolean;
}

function readProcessor(): Processor {
  try {
    const text = readFileSync("/proc/cpuinfo", "utf8");
    const line = /^(?:flags|Features)\s*:(.*)$/m.exec(text);
    return { has: new Set(line?.[1]?.trim().split(" ")), halves: /^vendor_id\s*: GenuineIntel$/m.test(text) };
  } catch {
    return { has: new Set(), halves: false };
  }
}
