/** Models on this disk: their names, the store, registries and the catalogue. */
export { blobPath, findBlob, receiveBlob, touchBlob } from "./store/blobs.ts";
export { catalogueFields, fitOf, readCatalogue, suggestionsOf, type MachineFacts } from "./catalogue.ts";
export type { CreateRequest, Progress } from "./create/creation.ts";
export { describeGguf, type GgufDetails } from "./store/details.ts";
export { parseDigest, type Digest } from "./store/digest.ts";
export type { ConfigExtras } from "./store/image.ts";
export { EMBEDDED_NAME, installEmbedded } from "./install.ts";
export { makeLibrary, type Library } from "./create/library.ts";
export { makeStoreLock, type StoreLock } from "./store/lock.ts";
export { layersOf } from "./store/manifest.ts";
export { fileLayers } from "./store/model-files.ts";
export { openOthers, withOthers } from "./store/others.ts";
export { pruneLater, pruneStore } from "./store/prune.ts";
export { parseAddress } from "./registry/address.ts";
export { ensureKey } from "./registry/key.ts";
export { makeRegistry, type Registry } from "./registry/registry.ts";
export { withSource, type SourceParts } from "./source.ts";
export { openStore } from "./store/store.ts";
