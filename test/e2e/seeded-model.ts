/**
 * The embedded model, installed as the server does it, with a seed among its parameters: no answer that a test looks at
 * is drawn. A request's own seed still counts.
 */
import { join, resolve } from "node:path";
import { writeBlob } from "../../src/store/blobs.ts";
import { installEmbedded } from "../../src/store/install.ts";
import { CONFIG_TYPE, mediaType, readManifest, writeManifest } from "../../src/store/manifest.ts";
import { parseName } from "../../src/store/name.ts";
import { manifestPath, openStore, type Store } from "../../src/store/store.ts";

const DIR = resolve(import.meta.dir, "../../models/hearth");
const SEED = 1;

/** Returns the store. @param more parameters on top of those that the model ships with */
export async function installSeeded(root: string, more: Readonly<Record<string, unknown>> = {}): Promise<Store> {
  const store = await openStore(root);
  if ((await installEmbedded(store, { dir: DIR })) !== "installed") return store; // a folder that is used again
  const path = manifestPath(root, parseName("hearth:latest"));
  const [{ config, layers }, { parameters }] = [await readManifest(path), await store.load("hearth")];
  const text = JSON.stringify({ ...parameters, seed: SEED, ...more });
  const params = { mediaType: mediaType("params"), ...(await writeBlob(root, new TextEncoder().encode(text))) };
  await writeManifest(path, {
    config: { ...config, mediaType: CONFIG_TYPE },
    layers: layers.map((layer) => (layer.mediaType === params.mediaType ? params : layer)),
  });
  return store;
}

/** The folder of models of a server with this home and environment. */
export const modelsFolder = (home: string, env: Readonly<Record<string, string>> = {}): string =>
  env["HEARTH_MODELS"] ?? env["OLLAMA_MODELS"] ?? join(env["HEARTH_HOME"] ?? join(home, ".hearth"), "models");
