/**
 * A GPU for machines without one: SwiftShader, a Vulkan driver that computes on the CPU, out of the npm package of a
 * headless browser. Processes started with `swiftShaderEnv()` find it; nothing is installed.
 */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { brotliDecompressSync } from "node:zlib";

/** The packed files of the browser's package, and a folder of this person and version for what is unpacked of them. */
async function packageOf(what: string): Promise<{ packed: string; folder: string }> {
  const packed = join(dirname(Bun.resolveSync("@sparticuz/chromium/package.json", import.meta.dir)), "bin");
  const { version } = await Bun.file(join(packed, "../package.json")).json();
  return { packed, folder: join(tmpdir(), `hearth-test-${what}-${version}-${process.getuid?.() ?? 0}`) };
}

/**
 * Environment of a process that is to find the driver, extracted on first use and kept between runs. Another software
 * driver that is installed takes its place where HEARTH_TEST_VULKAN_DRIVER names its file.
 */
export async function swiftShaderEnv(): Promise<Record<string, string>> {
  const other = process.env["HEARTH_TEST_VULKAN_DRIVER"];
  if (other) return { VK_DRIVER_FILES: other, MALLOC_MMAP_THRESHOLD_: "1048576" };
  const { packed, folder } = await packageOf("swiftshader");
  await once(folder, (partial) => extract(join(packed, "swiftshader.tar.br"), partial));
  return {
    LD_LIBRARY_PATH: folder,
    VK_DRIVER_FILES: join(folder, "vk_swiftshader_icd.json"),
    MALLOC_MMAP_THRESHOLD_: "1048576", // what a runner is started with: freed arenas go back to the system
  };
}

/** Path of the headless browser itself, with its driver beside it; extracted as the driver is. */
export async function browserPath(): Promise<string> {
  const { packed, folder } = await packageOf("browser");
  await once(folder, async (partial) => {
    await extract(join(packed, "swiftshader.tar.br"), partial);
    const program = brotliDecompressSync(await readFile(join(packed, "chromium.br")));
    await writeFile(join(partial, "browser"), program, { mode: 0o755 });
  });
  return join(folder, "browser");
}

async function extract(archive: string, folder: string): Promise<void> {
  await new Bun.Archive(brotliDecompressSync(await readFile(archive))).extract(folder);
}

/** Fills a folder, which appears whole or not at all: several test processes may want it at once. */
async function once(folder: string, fill: (partial: string) => Promise<void>): Promise<void> {
  if (existsSync(folder)) return;
  const partial = await mkdtemp(`${folder}-`);
  await fill(partial);
  await rename(partial, folder).catch(async (error: unknown) => {
    await rm(partial, { recursive: true });
    if (!existsSync(folder)) throw error;
  });
}
