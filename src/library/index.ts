/** Models on this disk: their names, the store, registries and the catalogue. */
export { blobPath, findBlob, receiveBlob, touchBlob } from "./blobs.ts";
export { catalogueFields, fitOf, readCatalogue, suggestionsOf, type MachineFacts } from "./catalogue.ts";
export type { CreateRequest, Progress } from "./creation.ts";
export { describeGguf, type GgufDetails } from "./details.ts";
export { parseDigest, type Digest } from "./digest.ts";
export type { ConfigExtras } from "./image.ts";
export { EMBEDDED_NAME, installEmbedded } from "./install.ts";
export { makeLibrary, type Library } from "./library.ts";
export { makeStoreLock, type StoreLock } from "./lock.ts";
export { layersOf } from "./manifest.ts";
export { fileLayers } from "./model-files.ts";
export { openOthers, withOthers } from "./others.ts";
export { pruneLater, pruneStore } from "./prune.ts";
export { parseAddress } from "./registry/address.ts";
export { ensureKey } from "./registry/key.ts";
export { makeRegistry, type Registry } from "./registry/registry.ts";
export { withSource, type SourceParts } from "./source.ts";
export { openStore } from "./store.ts";
