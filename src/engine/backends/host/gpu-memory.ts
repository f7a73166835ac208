/**
 * The memory of a GPU, which WebGPU does not report: read from the vendor's tool or from sysfs. On a Mac it is the part
 * of the machine's memory that the server's settings give.
 */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

export interface GpuMemory {
  readonly total: number;
  /** Bytes that no process uses now. */
  readonly free: number;
}

/** An adapter of WebGPU. */
interface Adapter {
  readonly vendor: string;
  readonly name: string;
  /** WebGPU's form of the card's name. */
  readonly device?: string;
}

/** Sources of information about GPU memory. */
export interface MemorySources {
  readonly platform: NodeJS.Platform;
  /** NVIDIA's tool. */
  readonly nvidiaSmi: string;
  /** The folder with the graphics cards of the kernel. */
  readonly drm: string;
}

const SYSTEM: MemorySources = {
  platform: process.platform,
  nvidiaSmi: "nvidia-smi",
  drm: "/sys/class/drm",
};
const QUERY = ["--query-gpu=name,memory.total,memory.free", "--format=csv,noheader,nounits"];
const TOOL_TIMEOUT_MS = 3000;
const MIB = 2 ** 20;
/** PCI vendors by their name in WebGPU. */
const VENDORS: Readonly<Record<string, string>> = { amd: "0x1002", intel: "0x8086", nvidia: "0x10de" };

/** The memory of an adapter; undefined: unknown. Among equal cards, the one with the most free memory counts. */
export const gpuMemory = async (adapter: Adapter, sources?: MemorySources): Promise<GpuMemory | undefined> =>
  (await gpuMemories(adapter, sources))[0];

/** The memory of each card that the adapter may be, the one with the most free memory first. */
export async function gpuMemories(adapter: Adapter, sources: MemorySources = SYSTEM): Promise<GpuMemory[]> {
  const found = adapter.vendor === "nvidia" ? await fromNvidia(adapter, sources) : await fromSysfs(adapter, sources);
  return found.toSorted((a, b) => b.free - a.free);
}

async function fromNvidia({ name, device }: Adapter, { nvidiaSmi }: MemorySources): Promise<GpuMemory[]> {
  let text = "";
  try {
    const options = { stdout: "pipe", stderr: "ignore", timeout: TOOL_TIMEOUT_MS } as const;
    text = await Bun.spawn([nvidiaSmi, ...QUERY], options).stdout.text();
  } catch {
    return []; // not installed
  }
  const all = text.split("\n").flatMap((line) => {
    const [model = "", total, free] = line.split(",").map((part) => part.trim());
    const memory = { total: MIB * Number(total), free: MIB * Number(free) };
    return memory.total > 0 && memory.free >= 0 ? [{ model, memory }] : [];
  });
  const alike = all.filter(({ model }) => model === name || identifierOf(model) === device);
  return (alike.length > 0 ? alike : all).map(({ memory }) => memory);
}

/** The form in which WebGPU gives a card's name. */
const identifierOf = (model: string): string => model.toLowerCase().replace(/[^a-z0-9]+/g, "-");

/** AMD's driver, and others that report memory in the same way. */
async function fromSysfs({ vendor }: Adapter, { platform, drm }: MemorySources): Promise<GpuMemory[]> {
  if (platform !== "linux") return [];
  const cards = (await readdir(drm).catch(() => [])).filter((name) => /^card\d+$/.test(name));
  const found = await Promise.all(
    cards.map(async (card): Promise<GpuMemory[]> => {
      const read = (name: string): Promise<string> => readFile(join(drm, card, "device", name), "utf8");
      try {
        if ((await read("vendor")).trim() !== VENDORS[vendor]) return [];
        const [total, used] = [await read("mem_info_vram_total"), await read("mem_info_vram_used")].map(Number);
        return total! > 0 && used! >= 0 ? [{ total: total!, free: Math.max(0, total! - used!) }] : []; // both read
      } catch {
        return []; // a driver without these files
      }
    }),
  );
  return found.flat();
}
