/**
 * Chat formats recognised by their turn markers, with their stop strings: files often name another end-of-text token
 * than the one that ends a turn. Only stop strings are taken from a format; the file's own Jinja template renders the
 * prompt. Formats whose markers are ordinary words are omitted, because such a stop would cut ordinary text.
 */

export interface ChatFormat {
  readonly name: string;
  readonly stop: readonly string[];
  /** The stop string that is the end-of-text token in this format's own vocabularies; in others it is plain text. */
  readonly eos?: string;
  /** Texts that a Jinja template of this format contains, all of them; absent: the stop strings. */
  readonly marks?: readonly string[];
}

/** Names and stops are the same as in other servers. The first match counts. */
const KNOWN: readonly ChatFormat[] = [
  { name: "alfred", stop: ["<start_system>", "<end_message>", "<start_user>", "<start_assistant>"] },
  { name: "chatml", stop: ["<|im_start|>", "<|im_end|>"] },
  { name: "command-r", stop: ["<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>"] },
  {
    name: "gemma3-instruct",
    stop: ["<end_of_turn>"],
    marks: ["<start_of_turn>", "<end_of_turn>", "<start_of_image>"],
  },
  { name: "gemma-instruct", stop: ["<start_of_turn>", "<end_of_turn>"] },
  { name: "llama3-instruct", stop: ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"] },
  { name: "llama2-chat", stop: ["[INST]", "[/INST]", "<<SYS>>", "<</SYS>>"] },
  {
    name: "phi-3",
    stop: ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>"],
    marks: ["<|end|>", "<|user|>", "<|assistant|>"],
  },
  {
    name: "zephyr",
    stop: ["<|system|>", "</s>", "<|user|>", "<|assistant|>"],
    eos: "</s>",
    marks: ["<|user|>", "<|assistant|>", "eos_token"],
  },
  { name: "openchat", stop: ["<|end_of_turn|>"] },
];

/** Its stops for a model whose end of text is `eos`. */
export const stopsFor = ({ stop, eos: own }: ChatFormat, eos: string | undefined): readonly string[] =>
  stop.filter((each) => each !== own || each === eos);

/** The format of a Jinja chat template, if known. */
export function findChatFormat(jinja: string): ChatFormat | undefined {
  return KNOWN.find(({ stop, marks = stop }) => marks.every((mark) => jinja.includes(mark)));
}
