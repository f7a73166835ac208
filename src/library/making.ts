/** Converts, quantizes and checks model files. A server loads it when it first makes a model. */
export { HEADER_ARRAY_ITEMS_MAX, type CheckModel } from "./create/architecture.ts";
export { isModelFile, kindOfFiles } from "./convert/folder.ts";
export { readModelfileAt, requestOfModelfile } from "./create/modelfile-request.ts";
export { parseFileType } from "./create/quantize-mix.ts";
export { quantizeFile, type QuantizeOptions } from "./create/quantize.ts";
export { blobSource, type Source } from "./create/sources.ts";
