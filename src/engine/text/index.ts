/** Vocabularies and templates of model files. */
export { fileOptions } from "./sampling/file-options.ts";
export { findChatFormat, stopsFor, type ChatFormat } from "./template/detect.ts";
export { capabilitiesWith, type TemplateFacts } from "./template/facts.ts";
export { parseJinja } from "./template/jinja.ts";
export { choosePrompt, type Capabilities } from "./template/prompt.ts";
export { byteCharacters } from "./tokenizer/byte-alphabet.ts";
export { canFill } from "./tokenizer/fill-in-the-middle.ts";
export { checkTokenizer, loadTokenizer } from "./tokenizer/load.ts";
export { vocabularyDifference } from "./tokenizer/same-vocabulary.ts";
export type { Tokenizer } from "./tokenizer/tokenizer.ts";
