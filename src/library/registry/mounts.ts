/**
 * Finds another repository of the same registry that has a blob, so that it can be mounted instead of sent: the one
 * that a layer names, or that of a local model whose name is of that registry. For the public registry, names without a
 * host are not tried, because most of them exist only here.
 */
import { join } from "node:path";
import { checkNotCancelled } from "../../base/index.ts";
import type { Digest } from "../store/digest.ts";
import { readManifest, type Layer } from "../store/manifest.ts";
import { isHostless, parseName, type ModelName } from "../store/name.ts";
import { digestsOf } from "../store/references.ts";
import { nameAt } from "../store/segments.ts";
import { manifestFiles } from "../store/store.ts";
import { repositoryUrl, type Address } from "./address.ts";
import { isRedirect, type RegistryClient } from "./client.ts";
import { StallWatch } from "./stall-watch.ts";

/** Maximum repositories to ask for one blob. */
const ASKED_MAX = 4;

/** The repository to mount a blob from, as `namespace/model`; undefined if unknown. Throws `cancelled`. */
export type FindMount = (blob: Layer) => Promise<string | undefined>;

/** @param roots stores of this machine */
export function makeFindMount(client: RegistryClient, roots: readonly string[]): FindMount {
  let known: Promise<Map<Digest, ModelName[]>> | undefined;
  return async (blob) => {
    const from = mountSource(blob, client.address);
    if (from !== undefined) return from;
    known ??= namesByBlob(roots, client.address);
    const names = (await known).get(blob.digest) ?? [];
    for (const name of names.slice(0, ASKED_MAX)) if (await hasBlob(client, { name, blob })) return repositoryOf(name);
    return undefined;
  };
}

/** The repository that a layer came from, if on the same registry. */
function mountSource({ from }: Layer, { name }: Address): string | undefined {
  if (from === undefined) return undefined;
  try {
    const found = parseName(from);
    return found.host === name.host ? repositoryOf(found) : undefined;
  } catch {
    return undefined; // a path
  }
}

const repositoryOf = ({ namespace, model }: ModelName): string => `${namespace}/${model}`;

/** For each blob of the local models, the names of repositories on this registry that have it. */
async function namesByBlob(roots: readonly string[], { base, name }: Address): Promise<Map<Digest, ModelName[]>> {
  const found = new Map<Digest, ModelName[]>();
  if (isHostless(name) && base.host === name.host) return found;
  for (const root of roots) {
    for (const segments of await manifestFiles(root).catch(() => [])) {
      const local = nameIn(segments);
      if (!local || local.host !== name.host || repositoryOf(local) === repositoryOf(name)) continue;
      const manifest = await readManifest(join(root, "manifests", ...segments)).catch(() => undefined);
      if (!manifest) continue; // deleted meanwhile, or unreadable
      for (const digest of new Set(digestsOf(manifest))) {
        const names = found.get(digest) ?? [];
        if (names.some((one) => repositoryOf(one) === repositoryOf(local))) continue;
        found.set(digest, [...names, local]);
      }
    }
  }
  return found;
}

/** Undefined for a file that belongs to no model. */
function nameIn(segments: readonly string[]): ModelName | undefined {
  try {
    return nameAt(segments);
  } catch {
    return undefined;
  }
}

/** Tries once: on failure, the blob is sent. */
async function hasBlob(client: RegistryClient, { name, blob }: { name: ModelName; blob: Layer }): Promise<boolean> {
  const { limits, signal, address } = client;
  const url = repositoryUrl({ ...address, name }, `blobs/${blob.digest}`);
  using watch = new StallWatch({ stallMs: limits.stallMs, wanted: signal });
  try {
    const { ok, status } = await client.send({ method: "HEAD", url }, watch);
    return ok || isRedirect(status);
  } catch {
    checkNotCancelled(signal);
    return false;
  }
}
