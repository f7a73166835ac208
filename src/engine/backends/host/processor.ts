/** The features of this machine's processor, from the system or from CPUID. */
import { dlopen, ptr } from "bun:ffi";
import { readFileSync } from "node:fs";
import { MAC_FACTS } from "../../../base/system.ts";

export interface Processor {
  /** Its features, as Linux names them. */
  readonly has: ReadonlySet<string>;
  /** The processor reads two streams of memory faster than one: measured on Intel's. */
  readonly halves: boolean;
}

const UNKNOWN: Processor = { has: new Set(), halves: false };

/** Eax, ebx, ecx and edx of a leaf of CPUID; of leaf −1, xgetbv. */
export type Cpuid = (leaf: number, subleaf: number) => readonly [number, number, number, number];

/**
 * @param library finds an undamaged kernel library for this system; the libraries for x64 have the CPUID instruction
 */
export function readProcessor(library: () => string | undefined): Processor {
  try {
    if (process.platform === "linux") return ofLinux(readFileSync("/proc/cpuinfo", "utf8"));
    if (process.arch === "x64") return askCpu(library());
    if (process.platform === "darwin") return askMac();
    if (process.platform === "win32") return askWindows();
  } catch {
    // The system does not report features: none is assumed.
  }
  return UNKNOWN;
}

/** @param text of /proc/cpuinfo */
export function ofLinux(text: string): Processor {
  const line = /^(?:flags|Features)\s*:(.*)$/m.exec(text);
  return { has: new Set(line?.[1]?.trim().split(" ")), halves: /^vendor_id\s*: GenuineIntel$/m.test(text) };
}

/** Calls `use` with CPUID, which is a function of the library. */
export function withCpuid<T>(library: string, use: (cpuid: Cpuid) => T): T {
  const { symbols, close } = dlopen(library, { hearth_cpuid: { args: ["u32", "u32", "ptr"], returns: "void" } });
  try {
    const out = new Uint32Array(4);
    return use((leaf, subleaf) => {
      symbols.hearth_cpuid(leaf, subleaf, ptr(out));
      return [out[0]!, out[1]!, out[2]!, out[3]!];
    });
  } finally {
    close();
  }
}

const askCpu = (library: string | undefined): Processor =>
  library === undefined ? UNKNOWN : withCpuid(library, ofCpuid);

/** Registers that the system must save before a feature can be used: bits of xgetbv. */
const [YMM, ZMM] = [0x06, 0xe6];
const INTEL = 0x756e6547; // "Genu", in ebx of leaf 0
/** [name, leaf, subleaf, register, bit, the registers that it uses] */
const BITS: readonly (readonly [string, number, number, 0 | 1 | 2, number, number])[] = [
  ["ssse3", 1, 0, 2, 9, 0],
  ["sse4_1", 1, 0, 2, 19, 0],
  ["fma", 1, 0, 2, 12, YMM],
  ["movbe", 1, 0, 2, 22, 0],
  ["f16c", 1, 0, 2, 29, YMM],
  ["bmi1", 7, 0, 1, 3, 0],
  ["bmi2", 7, 0, 1, 8, 0],
  ["avx2", 7, 0, 1, 5, YMM],
  ["avx512f", 7, 0, 1, 16, ZMM],
  ["avx512dq", 7, 0, 1, 17, ZMM],
  ["avx512cd", 7, 0, 1, 28, ZMM],
  ["avx512bw", 7, 0, 1, 30, ZMM],
  ["avx512vl", 7, 0, 1, 31, ZMM],
  ["avx512_vnni", 7, 0, 2, 11, ZMM],
  ["avx_vnni", 7, 1, 0, 4, YMM],
];

export function ofCpuid(cpuid: Cpuid): Processor {
  const [most, vendor] = cpuid(0, 0);
  const lastOf7 = most >= 7 ? cpuid(7, 0)[0] : -1;
  const savesWithXsave = ((cpuid(1, 0)[2] >>> 27) & 1) === 1;
  const saved = savesWithXsave ? cpuid(0xffffffff, 0)[0] : 0;
  const has = BITS.filter(([, leaf, subleaf, register, bit, registers]) => {
    if (leaf === 7 && subleaf > lastOf7) return false;
    return (saved & registers) === registers && ((cpuid(leaf, subleaf)[register] >>> bit) & 1) === 1;
  });
  return { has: new Set(has.map(([name]) => name)), halves: vendor === INTEL };
}

/** Features of arm64, by the names that macOS and Windows (winnt.h, PF_ARM_…) use. */
const ARM: readonly { readonly names: readonly string[]; readonly mac: string; readonly windows: number }[] = [
  { names: ["asimddp"], mac: "hw.optional.arm.FEAT_DotProd", windows: 43 },
  { names: ["fphp", "asimdhp"], mac: "hw.optional.arm.FEAT_FP16", windows: 67 },
  { names: ["i8mm"], mac: "hw.optional.arm.FEAT_I8MM", windows: 66 },
];

/** Every such processor has NEON. */
export function ofArm(asks: (feature: { mac: string; windows: number }) => boolean): Processor {
  return { has: new Set(["asimd", ...ARM.filter(asks).flatMap(({ names }) => names)]), halves: false };
}

const askMac = (): Processor => ofArm(({ mac }) => MAC_FACTS.number(mac) === 1);

function askWindows(): Processor {
  const { symbols } = dlopen("kernel32.dll", { IsProcessorFeaturePresent: { args: ["u32"], returns: "i32" } });
  return ofArm(({ windows }) => symbols.IsProcessorFeaturePresent(windows) !== 0);
}
