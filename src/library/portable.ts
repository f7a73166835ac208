/** Names, formats and stored descriptions of models. No function here reads a file. */
export type { StoredAdapter } from "./store/adapters-over.ts";
export { checkRunsHere, isFileFormat } from "./store/formats.ts";
export {
  MODELFILE_BYTES_MAX,
  checkRequires,
  decodeModelfile,
  parseModelfile,
  printModelfile,
  type Modelfile,
  type ParameterValue,
} from "./store/modelfile.ts";
export { displayName, fullName, isHostless, makeName, parseReference, type ModelName } from "./store/name.ts";
export { hasOwnTemplate } from "./store/own-template.ts";
export type { ModelConfig, ModelEntry, ModelRef, Store, StoredMessage, StoredModel } from "./store/store.ts";
