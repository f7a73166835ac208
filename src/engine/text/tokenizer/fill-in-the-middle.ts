/**
 * Fill-in-the-middle: a model trained for it reads a marker and the text before the gap, a marker and the text after
 * it, and a third marker, and generates the text between. The file names the markers, or they are recognised by their
 * text. Ported from `llama_vocab::impl::load` (llama-vocab.cpp) and `format_prompt_infill` (llama.cpp's server).
 */
import type { Metadata } from "../../formats/gguf/gguf.ts";
import type { FillTokens, Tokenizer } from "./tokenizer.ts";

/** Share of a too small context for the text before the gap; the rest is for the text after it. */
const BEFORE_SHARE = 3 / 4;

const words = (text: string): readonly string[] => text.split(" ");

/** Texts of the markers, by the key that names one; all are control tokens. */
export const FILL_MARKERS = {
  fim_pre_token_id: words(
    "<|fim_prefix|> <fim-prefix> <fim_prefix> <｜fim▁begin｜> <PRE> ▁<PRE> <|code_prefix|> <|prefix|>",
  ),
  fim_suf_token_id: words(
    "<|fim_suffix|> <fim-suffix> <fim_suffix> <｜fim▁hole｜> <SUF> ▁<SUF> <|code_suffix|> <|suffix|>",
  ),
  fim_mid_token_id: words(
    "<|fim_middle|> <fim-middle> <fim_middle> <｜fim▁end｜> <MID> ▁<MID> <|code_middle|> <|middle|>",
  ),
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** Markers of other files, which a model may lack. A model that writes one has finished. */
export const FILE_MARKERS = {
  fim_rep_token_id: words("<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>"),
  fim_sep_token_id: words("<|file_sep|>"),
} as const;

type MarkerKey = keyof typeof FILL_MARKERS;

/** Older names of the keys. */
export const OLD_FILL_KEYS: Readonly<Record<MarkerKey, string>> = {
  fim_pre_token_id: "prefix_token_id",
  fim_suf_token_id: "suffix_token_id",
  fim_mid_token_id: "middle_token_id",
};

/** The markers, if all three exist. */
export function findFillTokens(
  named: ReadonlyMap<string, number | undefined>,
  idOf: (text: string) => number | undefined,
): FillTokens | undefined {
  const find = (key: MarkerKey): number | undefined =>
    named.get(key) ?? named.get(OLD_FILL_KEYS[key]) ?? FILL_MARKERS[key].map(idOf).find((id) => id !== undefined);
  const [prefix, suffix, middle] = [find("fim_pre_token_id"), find("fim_suf_token_id"), find("fim_mid_token_id")];
  if (prefix === undefined || suffix === undefined || middle === undefined) return undefined;
  const findFile = (key: keyof typeof FILE_MARKERS): number | undefined =>
    named.get(key) ?? FILE_MARKERS[key].map(idOf).find((id) => id !== undefined);
  return { prefix, suffix, middle, repository: findFile("fim_rep_token_id"), file: findFile("fim_sep_token_id") };
}

/** Returns whether this metadata's model has the markers. Needs `tokenizer.ggml.tokens` in full. */
export function canFill(metadata: Metadata): boolean {
  const named = new Map<string, number | undefined>();
  for (const key of [...Object.keys(FILL_MARKERS), ...Object.values(OLD_FILL_KEYS)]) {
    const id = metadata.get(`tokenizer.ggml.${key}`);
    if (typeof id === "number" && id >= 0 && id < 0xffffffff) named.set(key, id);
  }
  const stored = metadata.get("tokenizer.ggml.tokens");
  const wanted = new Set<string>(Object.values(FILL_MARKERS).flat());
  const found = new Map<string, number>();
  if (Array.isArray(stored)) {
    for (const [id, piece] of stored.entries())
      if (typeof piece === "string" && wanted.has(piece)) found.set(piece, id);
  }
  return findFillTokens(named, (text) => found.get(text)) !== undefined;
}

export interface FillFile {
  readonly name: string;
  readonly text: string;
}

/** Names that models saw in training, as llama.cpp's server gives them. */
const REPOSITORY = "myproject\n";
const OWN_FILE = "filename\n";
const SNIPPET = "\n\n--- snippet ---\n\n";

/** The ids of other files, which precede the gap's own file. */
function encodeFiles(
  { file, repository }: FillTokens,
  files: readonly FillFile[],
  encode: (text: string) => Int32Array,
): readonly number[] {
  if (files.length === 0) return [];
  const marked = (marker: number | undefined, text: string): number[] =>
    marker === undefined ? [] : [marker, ...encode(text)];
  const heading = (name: string): number[] => (file === undefined ? [...encode(SNIPPET)] : marked(file, `${name}\n`));
  const texts = files.flatMap(({ name, text }) => [...heading(name), ...encode(text)]);
  return [...marked(repository, REPOSITORY), ...texts, ...marked(file, OWN_FILE)];
}

/** The texts around a gap, and other files. */
interface FillTexts {
  readonly before: string;
  readonly after: string;
  /** The most important last. */
  readonly files?: readonly FillFile[] | undefined;
  /**
   * Maximum ids of all texts: truncates first the beginning of the files, then the parts of the texts that are furthest
   * from the gap.
   */
  readonly room: number | undefined;
}

/** The ids of a prompt with a gap. Markup in the texts stays text, because it is source code. */
export function encodeFill(
  tokenizer: Tokenizer,
  fill: FillTokens,
  { before, after, files = [], room }: FillTexts,
): { readonly ids: Int32Array; readonly truncated: boolean } {
  const encode = (text: string): Int32Array => tokenizer.encode(text, { addSpecial: false, parseSpecial: false });
  let prefix = encode(before);
  let suffix = encode(after);
  let others = encodeFiles(fill, files, encode);
  const truncated = room !== undefined && others.length + prefix.length + suffix.length > room;
  if (truncated) others = others.slice(others.length - Math.max(0, room - prefix.length - suffix.length));
  if (truncated && prefix.length + suffix.length > room) {
    others = [];
    const suffixMax = Math.max(room - prefix.length, Math.floor(room * (1 - BEFORE_SHARE)));
    suffix = suffix.subarray(0, suffixMax);
    prefix = prefix.subarray(prefix.length - Math.min(prefix.length, room - suffix.length));
  }
  const [first] = tokenizer.encode("", { addSpecial: true, parseSpecial: false });
  const bos = first !== undefined && first === tokenizer.bos ? [first] : []; // if the model has a BOS and adds it
  const ids = new Int32Array(bos.length + others.length + 3 + prefix.length + suffix.length);
  let at = 0;
  for (const part of [bos, others, [fill.prefix], prefix, [fill.suffix], suffix, [fill.middle]]) {
    ids.set(part, at);
    at += part.length;
  }
  return { ids, truncated };
}
