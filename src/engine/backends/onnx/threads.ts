/** The number of useful threads: physical cores that this process may use. */
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { MAC_FACTS, type MacFacts } from "../../../base/system.ts";
import { windowsCores } from "./windows-cores.ts";

const CPU_FOLDER = "/sys/devices/system/cpu";
const EFFICIENCY = "Efficiency";

/** Two hardware threads of one core share its vector units, so a second one per core does not help. */
export function physicalCores(folder = CPU_FOLDER): number {
  const allowed = availableParallelism();
  if (process.platform === "win32") return Math.min(allowed, windowsCores() ?? allowed);
  if (process.platform === "darwin") return Math.min(allowed, macCores() ?? allowed);
  try {
    const cpus = readdirSync(folder).filter((name) => /^cpu\d+$/.test(name));
    const siblings = cpus.map((cpu) => readFileSync(`${folder}/${cpu}/topology/thread_siblings_list`, "utf8").trim());
    const cores = new Set(siblings).size;
    return Math.max(1, Math.min(allowed, cores));
  } catch {
    return allowed; // not Linux, or the topology is hidden: most ARM cores have one thread each
  }
}

/**
 * Cores of Apple's processors without those named for efficiency, which would delay the others; all cores of Intel's.
 * The first kind is the fastest, and a processor may have two fast kinds (M5 Max: Super and Performance).
 */
export function macCores({ number, text }: MacFacts = MAC_FACTS): number | undefined {
  const fastest = number("hw.perflevel0.physicalcpu");
  if (fastest === undefined) return number("hw.physicalcpu");
  let cores = fastest;
  for (let kind = 1; kind < (number("hw.nperflevels") ?? 1); kind++) {
    const name = text(`hw.perflevel${kind}.name`) ?? EFFICIENCY;
    if (name !== EFFICIENCY) cores += number(`hw.perflevel${kind}.physicalcpu`) ?? 0;
  }
  return cores;
}
