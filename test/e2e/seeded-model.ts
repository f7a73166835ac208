/**
 * The embedded model, installed like the server does it, with a seed among its parameters: answers in tests are
 * deterministic. A request's own seed overrides it.
 */
import { join, resolve } from "node:path";
import { writeBlob } from "../../src/library/store/blobs.ts";
import { installEmbedded } from "../../src/library/install.ts";
import { CONFIG_TYPE, mediaType, readManifest, writeManifest } from "../../src/library/store/manifest.ts";
import { parseName } from "../../src/library/store/name.ts";
import { manifestPath, openStore, type Store } from "../../src/library/store/store.ts";

const DIR = resolve(import.meta.dir, "../../models/hearth");
const SEED = 1;
/** In a turn's prompt, the time and the markers' ids always change. */
const STEADY_TEMPLATE = "<|im_start|>user\nHello! Who are you?<|im_end|>\n<|im_start|>assistant\n";

interface Seeded {
  /** Added to the model's own parameters. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  /** True: the model gets the same prompt for every request, so it gives the same answer, which calls no tool. */
  readonly isSteady?: boolean;
}

/** Returns the store. */
export async function installSeeded(root: string, { parameters: more, isSteady }: Seeded = {}): Promise<Store> {
  const store = await openStore(root);
  if ((await installEmbedded(store, { dir: DIR })) !== "installed") return store; // a reused folder
  const path = manifestPath(root, parseName("hearth:latest"));
  const [{ config: unchanged, layers }, { config: shipped, parameters }] = [
    await readManifest(path),
    await store.load("hearth"),
  ];
  const layerOf = async (kind: "params" | "template" | "config", text: string) => ({
    mediaType: kind === "config" ? CONFIG_TYPE : mediaType(kind),
    ...(await writeBlob(root, new TextEncoder().encode(text))),
  });
  const own = [await layerOf("params", JSON.stringify({ ...parameters, seed: SEED, ...more }))];
  if (isSteady) own.push(await layerOf("template", STEADY_TEMPLATE));
  const config = isSteady ? await layerOf("config", JSON.stringify({ ...shipped, hearth_template: "own" })) : unchanged;
  await writeManifest(path, {
    config: { ...config, mediaType: CONFIG_TYPE },
    layers: [...layers.filter(({ mediaType: type }) => !own.some((layer) => layer.mediaType === type)), ...own],
  });
  return store;
}

/** The folder of models of a server with this home and environment. */
export const modelsFolder = (home: string, env: Readonly<Record<string, string>> = {}): string =>
  env["HEARTH_MODELS"] ?? env["OLLAMA_MODELS"] ?? join(env["HEARTH_HOME"] ?? join(home, ".hearth"), "models");
