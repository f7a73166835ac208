/**
 * A GPU for machines without one: SwiftShader, a Vulkan driver that computes on the CPU, out of the npm package of a
 * headless browser. Processes started with `swiftShaderEnv()` find it; nothing is installed.
 */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { brotliDecompressSync } from "node:zlib";

/** Environment of a process that is to find the driver, extracted on first use and kept between runs. */
export async function swiftShaderEnv(): Promise<Record<string, string>> {
  const packed = join(dirname(Bun.resolveSync("@sparticuz/chromium/package.json", import.meta.dir)), "bin");
  const { version } = await Bun.file(join(packed, "../package.json")).json();
  const folder = join(tmpdir(), `hearth-test-swiftshader-${version}-${process.getuid?.() ?? 0}`);
  if (!existsSync(folder)) await extract(join(packed, "swiftshader.tar.br"), folder);
  return {
    LD_LIBRARY_PATH: folder,
    VK_DRIVER_FILES: join(folder, "vk_swiftshader_icd.json"),
    MALLOC_MMAP_THRESHOLD_: "1048576", // what a runner is started with: freed arenas go back to the system
  };
}

/** Appears whole or not at all: several test processes may want it at once. */
async function extract(archive: string, folder: string): Promise<void> {
  const partial = await mkdtemp(`${folder}-`);
  await new Bun.Archive(brotliDecompressSync(await readFile(archive))).extract(partial);
  await rename(partial, folder).catch(async (error: unknown) => {
    await rm(partial, { recursive: true });
    if (!existsSync(folder)) throw error;
  });
}
