/** The GPU library of a program that was compiled without it: `hearth update --gpu` fetches it once. */
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AppError } from "../../base/index.ts";
import { apartFolder, shipped, storageError } from "../../base/system.ts";
import { fetchUnpacked, type FetchOptions } from "./fetch.ts";
import type { ReleaseFile } from "./manifest.ts";

const PACKAGE = "webgpu";

/** Returns a line that says where it is. Throws `unsupported`, `conflict`, `storage`. */
export async function fetchGpu(
  url: string,
  about: ReleaseFile,
  options: FetchOptions & { onBytes: (bytes: number) => void },
): Promise<string> {
  const wanted = shipped?.apart?.[PACKAGE];
  if (wanted === undefined) throw new AppError("unsupported", "the GPU library is inside this program already");
  if (about.version !== wanted) {
    const both = `expected ${PACKAGE} ${wanted}, the release has ${about.version}`;
    throw new AppError("conflict", `this program needs another GPU library: ${both}; run 'hearth update' first`);
  }
  const folder = apartFolder(PACKAGE, wanted);
  await unpackFolder(url, about, folder, options);
  return `the GPU library is in ${folder}; 'hearth devices' lists the GPUs`;
}

/** Fetches a tar and puts its files into a folder, which appears whole. Throws `storage`, `bad_file`. */
export async function unpackFolder(
  url: string,
  about: ReleaseFile,
  folder: string,
  options: FetchOptions & { onBytes: (bytes: number) => void },
): Promise<void> {
  const making = `${folder}.${crypto.randomUUID()}`;
  const tar = join(making, "files.tar");
  try {
    await mkdir(making, { recursive: true, mode: 0o700 });
    await fetchUnpacked(url, about, tar, options);
    for (const [name, file] of await new Bun.Archive(await Bun.file(tar).bytes()).files()) {
      if (!/^(?!\.)[\w.+@-]+(\/(?!\.)[\w.+@-]+)*$/.test(name))
        throw new AppError("bad_file", `${about.file}: name '${name}'`);
      await mkdir(dirname(join(making, name)), { recursive: true });
      await writeFile(join(making, name), await file.bytes(), { mode: 0o755 });
    }
    await Promise.all([tar, `${tar}.zst`].map((path) => rm(path)));
    await rm(folder, { recursive: true, force: true });
    await rename(making, folder);
  } catch (error) {
    throw storageError(error, dirname(folder));
  } finally {
    await rm(making, { recursive: true, force: true });
  }
}
