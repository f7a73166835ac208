/** Stores of other servers on this machine: their models are served in place and never changed. */
import { link, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { AppError, type Logger, messageOf } from "../../base/index.ts";
import { blobPath, findBlob } from "./blobs.ts";
import type { Claims } from "./claims.ts";
import type { Digest } from "./digest.ts";
import { copyBytes, writeDurably } from "../../base/system.ts";
import type { ModelName } from "./name.ts";
import { findName, openStore, type Store, type StoredModel } from "./store.ts";

/** The readable stores among `paths`, except our own under any path. */
export async function openOthers(
  paths: readonly string[],
  { own, log }: { own: string; log: Logger },
): Promise<Store[]> {
  const known = new Set([await realpath(own).catch(() => own)]);
  const found: Store[] = [];
  for (const path of paths) {
    try {
      const root = await realpath(path);
      if (known.has(root)) continue;
      known.add(root);
      if ((await stat(join(root, "manifests"))).isDirectory()) found.push(await openStore(root));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") continue; // no store, or none yet
      log.warn("a store of another server cannot be read", { path, error: messageOf(error) });
    }
  }
  return found;
}

/** Combines stores: our own is changeable and its names win; the others are only read. */
export function withOthers(own: Store, others: readonly Store[]): Store {
  if (others.length === 0) return own;
  const stores = [own, ...others];
  const first = async <T>(ask: (store: Store) => Promise<T | undefined>): Promise<T | undefined> => {
    for (const store of stores) {
      const found = await ask(store);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return {
    root: own.root,
    find: (name) => first((store) => store.find(name)),
    resolve: (name) => first((store) => store.resolve(name)),
    check: (model) => (stores.find(({ root }) => root === model.root) ?? own).check(model),
    async list(onBad) {
      const listed = new Map<string, StoredModel>();
      for (const store of stores) {
        for (const model of await store.list(onBad)) {
          const name = model.displayName.toLowerCase();
          if (!listed.has(name)) listed.set(name, model);
        }
      }
      return [...listed.values()].sort((a, b) => b.modifiedAt.getTime() - a.modifiedAt.getTime());
    },
    async load(name) {
      const holder = await first(async (store) => ((await store.find(name)) ? store : undefined));
      return (holder ?? own).load(name);
    },
  };
}

/** The first store that has a name, and the name's spelling there. */
export async function findIn(
  roots: readonly string[],
  name: ModelName,
): Promise<{ root: string; name: ModelName } | undefined> {
  for (const root of roots) {
    const found = await findName(root, name);
    if (found) return { root, name: found };
  }
  return undefined;
}

/**
 * Adds blobs of another store to ours: by links if the file system supports them, else by copies. Throws `storage`, and
 * `bad_file` if one is missing.
 */
export async function borrowBlobs(
  blobs: readonly { readonly digest: Digest; readonly size: number }[],
  { from, to, claims }: { from: string; to: string; claims?: Claims },
): Promise<void> {
  for (const { digest, size } of blobs) {
    const isNew = (await findBlob(to, digest)) !== size;
    claims?.add(digest, isNew);
    if (!isNew) continue;
    if ((await findBlob(from, digest)) !== size) {
      throw new AppError("bad_file", `${blobPath(from, digest)}: expected a blob of ${size} bytes`);
    }
    const source = blobPath(from, digest);
    await writeDurably(blobPath(to, digest), (temporary) =>
      link(source, temporary).catch(() => copyBytes({ from: source, to: temporary })),
    );
  }
}
