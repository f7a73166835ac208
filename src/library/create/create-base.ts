/** The base of a new model: from our own store, or from a read-only store, whose blobs are borrowed. */
import { AppError } from "../../base/index.ts";
import { findBlob } from "../store/blobs.ts";
import type { Claims } from "../store/claims.ts";
import { layersOf, parseJsonObject, readManifest, type Layer } from "../store/manifest.ts";
import { displayName, parseReference } from "../store/name.ts";
import { borrowBlobs, findIn } from "../store/others.ts";
import { CONFIG_BYTES_MAX, manifestPath, readText, TEXT_BYTES_MAX } from "../store/store.ts";

export interface Base {
  readonly name: string;
  readonly layers: readonly Layer[];
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly config: Readonly<Record<string, unknown>>;
}

/**
 * Throws `not_found`, and `bad_file` if a blob is missing.
 * @param claims receives the blobs of a model in another store
 */
export async function readBase(
  { root, others }: { root: string; others: readonly string[] },
  text: string,
  claims: Claims,
): Promise<Base> {
  const found = await findIn([root, ...others], parseReference(text));
  if (!found) throw new AppError("not_found", `model '${text}' not found`);
  const display = displayName(found.name);
  const manifest = await readManifest(manifestPath(found.root, found.name));
  if (found.root !== root) {
    const blobs = [manifest.config, ...manifest.layers];
    await borrowBlobs(blobs, { from: found.root, to: root, claims });
  }
  const json = async (layer: Layer, limit: number): Promise<Record<string, unknown>> => {
    const what = `model '${display}': ${layer.mediaType}`;
    return parseJsonObject(await readText(root, { layer, limit, what }), what);
  };
  for (const { digest, size, mediaType: type } of manifest.layers) {
    if ((await findBlob(root, digest)) === size) continue;
    throw new AppError("bad_file", `model '${display}': ${type}: expected a blob of ${size} bytes in ${digest}`);
  }
  const [params] = layersOf(manifest.layers, "params");
  return {
    name: display,
    layers: manifest.layers.map((layer) => ({ ...layer, from: display })),
    parameters: params ? await json(params, TEXT_BYTES_MAX) : {},
    config: await json(manifest.config, CONFIG_BYTES_MAX),
  };
}
