/** The CPU kernels that models are loaded with: the requested level, or the best one that passed its self-test. */
import { availableParallelism } from "node:os";
import { basename } from "node:path";
import { NO_LEVEL, slowOnCpu, Trust, type Verdict, WASM_LEVEL } from "../engine/backends/index.ts";
import type { Logger } from "../base/index.ts";
import type { Config } from "../base/config/index.ts";
import { machineCache } from "../base/system.ts";
import { formatTable } from "./terminal/format.ts";
import type { Terminal } from "./terminal/terminal.ts";

/** Backends that run a kernel library, or may give some layers to a CPU backend. */
const BACKENDS: ReadonlySet<string> = new Set(["auto", "simd", "webgpu"]);

export interface Kernels {
  /** The level to load a model with; undefined: no backend needs one. The first call may test libraries. */
  level(): Promise<string | undefined>;
  /** The CPU's displayed name, with the level if it is known. Tests nothing. */
  device(): Promise<string>;
}

/** The level that the configuration names; undefined: the best. */
export const forcedLevel = ({ simd }: Pick<Config, "simd">): string | undefined => (simd === "auto" ? undefined : simd);

interface KernelOptions {
  /** The command line that starts this program. */
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly log: Pick<Logger, "warn">;
}

export function makeKernels(config: Pick<Config, "backend" | "simd">, { command, env, log }: KernelOptions): Kernels {
  const forced = forcedLevel(config);
  const trust = new Trust({ cacheDir: machineCache(), command, env });
  const logged = new Set<string>();
  const tell = (verdicts: readonly Verdict[]): Verdict | undefined => {
    for (const { level, fault } of verdicts) {
      if (fault === undefined || logged.has(level.level)) continue;
      logged.add(level.level);
      log.warn("CPU kernels failed their self-test and are not used", { kernels: level.title, fault });
    }
    return verdicts.find(({ fault }) => fault === undefined);
  };
  const isTested = forced === undefined && BACKENDS.has(config.backend);
  const wasmLevel = async (): Promise<string> => {
    const verdict = await trust.wasmVerdict();
    return verdict && tell([verdict]) ? WASM_LEVEL : NO_LEVEL;
  };
  return {
    async level() {
      if (config.backend === "wasm") return wasmLevel();
      if (!isTested) return forced;
      return tell(await trust.verdicts())?.level.level ?? NO_LEVEL;
    },
    async device() {
      const known = isTested ? await trust.known() : undefined;
      const name = known ? (tell(known)?.level.title ?? "no tested kernels") : forced;
      return `CPU (${availableParallelism()} cores${name === undefined ? "" : `, ${name}`})`;
    },
  };
}

interface TestOptions {
  readonly json: boolean;
  readonly command: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/** `hearth selftest`: tests every level of this machine. Returns whether all passed. */
export async function selftest(terminal: Terminal, { json, ...program }: TestOptions): Promise<boolean> {
  const verdicts = await new Trust({ cacheDir: machineCache(), ...program }).testAll();
  if (json) {
    const plain = verdicts.map(({ level: { level, file }, fault, ms }) => ({ level, file, fault, ms: Math.round(ms) }));
    terminal.write(`${JSON.stringify(plain, null, 2)}\n`);
  } else if (verdicts.length === 0) {
    terminal.write(`No kernels run here: ${slowOnCpu()}\n`);
  } else {
    const rows = verdicts.map(({ level, fault, ms }) => [
      level.level,
      level.title,
      fault ?? "passed",
      `${Math.round(ms)} ms`,
      basename(level.file),
    ]);
    terminal.write(formatTable(["LEVEL", "PROCESSORS WITH", "RESULT", "TIME", "LIBRARY"], rows));
  }
  return verdicts.every(({ fault }) => fault === undefined);
}

/** The CPU kernels that the server uses, as far as results are kept. */
export async function kernelsLine(): Promise<string> {
  const known = await new Trust({ cacheDir: machineCache(), command: [], env: {} }).known();
  if (!known) return "CPU kernels: not tested yet (hearth selftest)";
  const failed = known.flatMap(({ level, fault }) => (fault === undefined ? [] : [`${level.title}: ${fault}`]));
  const passed = known.find(({ fault }) => fault === undefined);
  const used = passed ? `${passed.level.title}, passed the self-test` : "none passed the self-test";
  const reason = failed.length === 0 ? slowOnCpu() : undefined; // the reason that there is no library to test
  return [`CPU kernels: ${used}`, ...(reason === undefined ? [] : [reason]), ...failed].join("; ");
}
