/**
 * Installs the model that ships with Hearth as `hearth:latest` at first start. Later starts change nothing unless the
 * shipped model has changed; a user's model of that name is left alone.
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { AppError, messageOf } from "../base/index.ts";
import { importBlob, writeBlob, type Blob } from "./store/blobs.ts";
import { digestOf, digestOfFile, hexOf, type Digest } from "./store/digest.ts";
import { removeLeftovers } from "../base/system.ts";
import { imageConfig } from "./store/image.ts";
import { CONFIG_TYPE, mediaType, writeManifest, type Layer, type LayerKind } from "./store/manifest.ts";
import { decodeModelfile, parseModelfile, type Modelfile } from "./store/modelfile.ts";
import { parseName } from "./store/name.ts";
import { manifestPath, type Store, type StoredModel } from "./store/store.ts";

const LEFTOVER_AGE_MS = 3600_000; // longer than any copy takes

export const EMBEDDED_NAME = "hearth:latest";

/** True if a model has that name: a server need not wait for `installEmbedded`, which compares whole files. */
export const hasEmbedded = ({ root }: Pick<Store, "root">): boolean =>
  existsSync(manifestPath(root, parseName(EMBEDDED_NAME)));

/**
 * `installed`: written now; `present`: nothing to do; `kept`: a model that Hearth did not install has the name.
 * Throws `bad_file` if the shipped files cannot be read or the store cannot be written.
 * @param dir folder with `Modelfile` and the file that its FROM names
 */
export async function installEmbedded(
  store: Store,
  { dir }: { dir: string },
): Promise<"installed" | "present" | "kept"> {
  try {
    return await install(store, dir);
  } catch (error) {
    throw new AppError("bad_file", `installing ${EMBEDDED_NAME} into '${store.root}': ${messageOf(error)}`, {
      cause: error,
    });
  }
}

async function install(store: Store, dir: string): Promise<"installed" | "present" | "kept"> {
  const bytes = await readFile(join(dir, "Modelfile"));
  const file = parseModelfile(decodeModelfile(bytes));
  const weights = join(dir, file.from[0] ?? "");
  const source = sourceDigest(digestOf(bytes), await digestOfFile(weights));
  const existing = await findReadable(store);
  if (existing && existing.config.hearth_embedded === undefined) return "kept";
  if (existing?.config.hearth_embedded === source) return "present";

  await removeLeftovers(join(store.root, "blobs"), { olderThanMs: LEFTOVER_AGE_MS });
  const blob = await importBlob(store.root, weights);
  const layers: Layer[] = [layerOf("model", blob)];
  for (const [kind, text] of textLayers(file)) layers.push(layerOf(kind, await writeText(store, text)));
  const { describeBlob } = await import("./store/describe-blob.ts"); // later starts read no model file
  const details = await describeBlob(store.root, blob.digest);
  const config = imageConfig({ details, layers, extras: { hearth_embedded: source } });
  await writeManifest(manifestPath(store.root, parseName(EMBEDDED_NAME)), {
    config: { mediaType: CONFIG_TYPE, ...(await writeText(store, JSON.stringify(config))) },
    layers,
  });
  return "installed";
}

/** The model of that name if it is completely readable; a damaged one is replaced. */
async function findReadable(store: Store): Promise<StoredModel | undefined> {
  try {
    return await store.load(EMBEDDED_NAME);
  } catch (error) {
    if (error instanceof AppError && (error.code === "not_found" || error.code === "bad_file")) return undefined;
    throw error;
  }
}

/** Changes with the Modelfile or the weights. */
function sourceDigest(modelfile: Digest, weights: Digest): string {
  return hexOf(digestOf(new TextEncoder().encode(`${modelfile}\n${weights}\n`)));
}

/** The text layers of a Modelfile, in the order of other servers. */
function textLayers(file: Modelfile): [LayerKind, string][] {
  const layers: [LayerKind, string][] = [];
  if (file.template !== undefined) layers.push(["template", file.template]);
  if (file.system !== undefined) layers.push(["system", file.system]);
  for (const license of file.licenses) layers.push(["license", license]);
  if (Object.keys(file.parameters).length > 0) layers.push(["params", JSON.stringify(file.parameters)]);
  if (file.messages.length > 0) layers.push(["messages", JSON.stringify(file.messages)]);
  return layers;
}

function layerOf(kind: LayerKind, blob: Blob): Layer {
  return { mediaType: mediaType(kind), ...blob };
}

async function writeText(store: Store, text: string): Promise<Blob> {
  return writeBlob(store.root, new TextEncoder().encode(text));
}
