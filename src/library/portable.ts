/** Names, formats and stored descriptions of models. No function here reads a file. */
export { checkRunsHere, isFileFormat } from "./formats.ts";
export {
  MODELFILE_BYTES_MAX,
  checkRequires,
  decodeModelfile,
  parseModelfile,
  printModelfile,
  type Modelfile,
  type ParameterValue,
} from "./modelfile.ts";
export { displayName, fullName, isHostless, makeName, parseReference, type ModelName } from "./name.ts";
export { hasOwnTemplate } from "./own-template.ts";
export type { ModelConfig, ModelEntry, ModelRef, Store, StoredMessage, StoredModel } from "./store.ts";
