/** Adds a GGUF file to a store under a name, so that a server can be measured on it. */
import { importBlob, writeBlob } from "../src/library/store/blobs.ts";
import { CONFIG_TYPE, mediaType, writeManifest } from "../src/library/store/manifest.ts";
import { parseName } from "../src/library/store/name.ts";
import { manifestPath } from "../src/library/store/store.ts";

/** Returns the name for requests. */
export async function installFile(options: { root: string; file: string; name: string }): Promise<string> {
  const { root, file, name } = options;
  const weights = await importBlob(root, file);
  const config = await writeBlob(root, new TextEncoder().encode(JSON.stringify({ model_format: "gguf" })));
  await writeManifest(manifestPath(root, parseName(name)), {
    config: { mediaType: CONFIG_TYPE, ...config },
    layers: [{ mediaType: mediaType("model"), ...weights }],
  });
  return name;
}
