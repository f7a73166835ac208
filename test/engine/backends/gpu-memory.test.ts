/** The memory of a GPU, from the sources that a machine has. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gpuMemory, type MemorySources } from "../../../src/engine/backends/host/gpu-memory.ts";
import { comparableOf } from "../../../src/engine/backends/host/other-gpus.ts";

const GIB = 2 ** 30;
let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-gpu-memory-"))));
afterAll(() => rm(folder, { recursive: true }));

const sources = (more: Partial<MemorySources> = {}): MemorySources => ({
  platform: "linux",
  nvidiaSmi: join(folder, "missing"),
  drm: join(folder, "missing"),
  ...more,
});

async function tool(name: string, lines: readonly string[]): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, `#!/bin/sh\ncat <<'END'\n${lines.join("\n")}\nEND\n`);
  await chmod(path, 0o755);
  return path;
}

test.skipIf(process.platform === "win32")(
  "the memory of an NVIDIA card comes from nvidia-smi, by the card's name",
  async () => {
    const lines = [
      "NVIDIA T400, 2048, 1000",
      "NVIDIA H100 80GB HBM3, 81559, 1024",
      "NVIDIA H100 80GB HBM3, 81559, 81000",
    ];
    const nvidiaSmi = await tool("cards", lines);
    const mib = 2 ** 20;
    const h100 = { vendor: "nvidia", name: "NVIDIA H100 80GB HBM3" };
    expect(await gpuMemory(h100, sources({ nvidiaSmi }))).toEqual({ total: 81_559 * mib, free: 81_000 * mib });
    const t400 = { vendor: "nvidia", name: "NVIDIA: 550.54", device: "nvidia-t400" }; // the driver instead of the model
    expect(await gpuMemory(t400, sources({ nvidiaSmi }))).toEqual({ total: 2048 * mib, free: 1000 * mib });
    for (const broken of [["NVIDIA-SMI has failed"], ["NVIDIA T400, [N/A], [N/A]"], [""]])
      expect(await gpuMemory(t400, sources({ nvidiaSmi: await tool("broken", broken) }))).toBeUndefined();
    expect(await gpuMemory(t400, sources())).toBeUndefined();
  },
);

test("the memory of an AMD card comes from sysfs, without cards of other vendors", async () => {
  const drm = join(folder, "drm");
  const card = async (name: string, files: Readonly<Record<string, string>>): Promise<void> => {
    await mkdir(join(drm, name, "device"), { recursive: true });
    for (const [file, text] of Object.entries(files)) await writeFile(join(drm, name, "device", file), `${text}\n`);
  };
  await card("card0", { vendor: "0x8086" });
  await card("card1", { vendor: "0x1002", mem_info_vram_total: `${24 * GIB}`, mem_info_vram_used: `${GIB}` });
  await card("card1-DP-1", { vendor: "0x1002", mem_info_vram_total: `${99 * GIB}`, mem_info_vram_used: "0" });
  const amd = { vendor: "amd", name: "AMD Radeon RX 7900 XTX (RADV NAVI31)" };
  expect(await gpuMemory(amd, sources({ drm }))).toEqual({ total: 24 * GIB, free: 23 * GIB });
  expect(await gpuMemory({ vendor: "intel", name: "Arc" }, sources({ drm }))).toBeUndefined();
  expect(await gpuMemory(amd, sources())).toBeUndefined();
});

test("a large model may use other cards that are known to have at least half of the first card's memory", () => {
  const names = (first: string, cards: Readonly<Record<string, readonly number[]>>): string[] =>
    comparableOf(
      first,
      Object.entries(cards).map(([name, totals]) => ({ name, totals })),
    ).map(({ name }) => name);
  expect(names("RTX 4090", { "RTX 4090": [24], "RTX 3060": [12], "RTX 3090": [24], T400: [2] })).toEqual([
    "RTX 3090",
    "RTX 3060",
  ]);
  // AMD's driver names no card: one of the two may have the processor's small part
  expect(names("RX 7900", { "RX 7900": [24, 0.5], "Radeon Graphics": [24, 0.5] })).toEqual([]);
  expect(names("RX 7900 (RADV NAVI31)", { "RX 7900": [24, 16], "RX 7900 (RADV NAVI31)": [24, 16] })).toEqual([]);
  expect(names("Arc", { Arc: [], "RTX 3060": [12] })).toEqual([]);
  expect(names("RTX 3060", { Arc: [], "RTX 3060": [12] })).toEqual([]);
});
