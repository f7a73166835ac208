/** Converts, quantizes and checks model files. A server loads it when it first makes a model. */
export { HEADER_ARRAY_ITEMS_MAX, type CheckModel } from "./architecture.ts";
export { isModelFile, kindOfFiles } from "./convert/folder.ts";
export { readModelfileAt, requestOfModelfile } from "./modelfile-request.ts";
export { parseFileType } from "./quantize-mix.ts";
export { quantizeFile, type QuantizeOptions } from "./quantize.ts";
export { blobSource, type Source } from "./sources.ts";
