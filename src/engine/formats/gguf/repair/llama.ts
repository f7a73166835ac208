/** Llama 3, and Llama 4's text part. */
import { getNumber, getStrings } from "../keys.ts";
import { hasMedia, MEDIA_TENSORS, type Repair } from "./repair.ts";

const EOS = "tokenizer.ggml.eos_token_id";
const PRE = "tokenizer.ggml.pre";
const END_OF_TEXT = 128_001;
const START_OF_HEADER = 128_006;
const END_OF_TURN = 128_009;

/** Early files have no pre-tokenizer, or a wrong one, and lack the end token of a turn. */
export const llama3: Repair = {
  family: "Llama 3",
  applies({ arch, metadata }) {
    if (arch !== "llama") return false;
    const pieces = getStrings(metadata, "tokenizer.ggml.tokens", []);
    if (pieces[END_OF_TURN] !== "<|eot_id|>") return false;
    const template = metadata.get("tokenizer.chat_template");
    const ofTurns = typeof template === "string" && /<\|(start_header_id|eot_id)\|>/.test(template);
    if (pieces[START_OF_HEADER] !== "<|start_header_id|>" && !ofTurns) return false;
    const pre = metadata.get(PRE);
    return pre === undefined || pre === "default" || getNumber(metadata, EOS, undefined) === END_OF_TEXT;
  },
  apply(header) {
    header.setPre("llama-bpe");
    header.metadata.set(EOS, END_OF_TURN);
    header.metadata.set("tokenizer.ggml.eot_token_id", END_OF_TURN);
  },
};

export const llama4: Repair = {
  family: "Llama 4",
  applies: (header) => header.arch === "llama4" && hasMedia(header),
  apply: (header) => header.hide(MEDIA_TENSORS),
};
