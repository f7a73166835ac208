/**
 * Special tokens (begin, end, padding, separator) and the chat template, from `tokenizer_config.json`, `config.json`,
 * `generation_config.json` and `chat_template.jinja`. Keys: gguf.md.
 */
import { AppError, isObject } from "../../base/index.ts";
import type { WriteValue } from "../../engine/formats/index.ts";
import { u32 } from "./architecture.ts";
import { findJson, findText, type JsonObject, type ModelFolder } from "./folder.ts";

/** GGUF's word for each kind of token, including its misspelt "seperator". */
const KINDS: Readonly<Record<string, string>> = {
  bos: "bos_token_id",
  eos: "eos_token_id",
  unk: "unknown_token_id",
  sep: "seperator_token_id",
  pad: "padding_token_id",
  cls: "cls_token_id",
  mask: "mask_token_id",
};
/** Keys for further end tokens of a generation, after `eos_token_id`. */
const FURTHER_ENDS = ["eot_token_id", "eom_token_id"];

/** The longest seen has 30 KB. */
const TEMPLATE_CHARS_MAX = 4 * 2 ** 20;

/** WordPiece's usual special tokens, which published configurations omit. */
const WORD_PIECE: Readonly<Record<string, string>> = {
  unk: "[UNK]",
  sep: "[SEP]",
  pad: "[PAD]",
  cls: "[CLS]",
  mask: "[MASK]",
};

interface SpecialSources {
  readonly folder: ModelFolder;
  /** `config.json` */
  readonly config: JsonObject;
  /** `tokenizer.json`, if present. */
  readonly tokenizer: JsonObject | undefined;
  readonly pieces: readonly string[];
  /** As for `Architecture`. */
  readonly ranksPairs?: boolean | undefined;
}

export async function specialMetadata(sources: SpecialSources): Promise<Record<string, WriteValue>> {
  const { folder, config, tokenizer, pieces, ranksPairs = false } = sources;
  const tokenizerConfig = (await findJson(folder, "tokenizer_config.json")) ?? {};
  const map = (await findJson(folder, "special_tokens_map.json")) ?? {};
  const generation = (await findJson(folder, "generation_config.json")) ?? {};
  const usual = isWordPiece(tokenizer) ? WORD_PIECE : {};
  const ids = new Map<string, number>();
  for (const [kind, key] of Object.entries(KINDS)) {
    const listed = [config[`${kind}_token_id`], generation[`${kind}_token_id`]].flat();
    const id =
      findToken(tokenizerConfig[`${kind}_token`], pieces) ??
      findToken(map[`${kind}_token`], pieces) ??
      listed.find((value) => isId(value, pieces)) ??
      findToken(usual[kind], pieces);
    if (isId(id, pieces)) ids.set(key, id);
  }
  for (const [key, id] of furtherEnds([config, generation], ids, pieces)) ids.set(key, id);
  const last = endOfTexts(tokenizer, pieces);
  const answersEnd = ids.get("eos_token_id");
  if (last !== undefined && answersEnd !== undefined && last !== answersEnd && last !== ids.get("seperator_token_id")) {
    ids.set("eos_token_id", last).set("eot_token_id", answersEnd);
  }
  const [bos, eos] = [ids.get("bos_token_id"), ids.get("eos_token_id")];
  return {
    ...Object.fromEntries([...ids].map(([key, id]) => [`tokenizer.ggml.${key}`, u32(id)])),
    ...addFlags({ tokenizerConfig, tokenizer, pieces, bos, eos }),
    ...(await templateMetadata(folder, tokenizerConfig)),
    ...(ranksPairs ? pairPrompt(tokenizer) : {}),
  };
}

const isWordPiece = (tokenizer: JsonObject | undefined): boolean =>
  isObject(tokenizer?.["model"]) && tokenizer["model"]["type"] === "WordPiece";

/** The last token of the template for a single text. For embedding models it may differ from an answer's end token. */
function endOfTexts(tokenizer: JsonObject | undefined, pieces: readonly string[]): number | undefined {
  const single = singleTemplate(tokenizer?.["post_processor"]) ?? [];
  return single.length > 1 ? findToken(single.at(-1), pieces) : undefined;
}

const isId = (value: unknown, pieces: readonly string[]): value is number =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value < pieces.length;

/** Text, or an object with text. */
function findToken(token: unknown, pieces: readonly string[]): number | undefined {
  const text = isObject(token) ? token["content"] : token;
  const id = typeof text === "string" ? pieces.indexOf(text) : -1;
  return id < 0 ? undefined : id;
}

/** Further end tokens of a generation, as chat models list them. */
function furtherEnds(
  files: readonly JsonObject[],
  ids: ReadonlyMap<string, number>,
  pieces: readonly string[],
): [string, number][] {
  const listed = files.flatMap((file) => [file["eos_token_id"]].flat());
  const eos = ids.get("eos_token_id");
  const further = [...new Set(listed.filter((value) => isId(value, pieces) && value !== eos))] as number[];
  return further.slice(0, FURTHER_ENDS.length).map((id, i) => [FURTHER_ENDS[i]!, id]); // no more than there are keys
}

interface AddSources {
  readonly tokenizerConfig: JsonObject;
  readonly tokenizer: JsonObject | undefined;
  readonly pieces: readonly string[];
  readonly bos: number | undefined;
  readonly eos: number | undefined;
}

/** BOS and EOS flags: from the configuration, else from the template for a single text. */
function addFlags({ tokenizerConfig, tokenizer, pieces, bos, eos }: AddSources): Record<string, WriteValue> {
  const single = singleTemplate(tokenizer?.["post_processor"]);
  const flag = (word: string, id: number | undefined, end: number): Record<string, WriteValue> => {
    if (id === undefined) return {};
    const said = tokenizerConfig[`add_${word}_token`];
    const value = typeof said === "boolean" ? said : single && single.at(end) === pieces[id];
    return value === undefined ? {} : { [`tokenizer.ggml.add_${word}_token`]: value };
  };
  return { ...flag("bos", bos, 0), ...flag("eos", eos, -1) };
}

/** Special tokens of the template, with undefined for the text; undefined without a template. */
function singleTemplate(processor: unknown, depth = 0): (string | undefined)[] | undefined {
  if (!isObject(processor) || depth > 4) return undefined;
  if (processor["type"] === "Sequence" && Array.isArray(processor["processors"])) {
    return processor["processors"].map((part: unknown) => singleTemplate(part, depth + 1)).find((found) => found);
  }
  if (processor["type"] === "RobertaProcessing" || processor["type"] === "BertProcessing") {
    const markOf = (mark: unknown): string => String([mark].flat()[0]);
    return [markOf(processor["cls"]), undefined, markOf(processor["sep"])];
  }
  const single = processor["type"] === "TemplateProcessing" ? processor["single"] : undefined;
  if (!Array.isArray(single)) return undefined;
  return single.map((part: unknown) => {
    const special = isObject(part) ? part["SpecialToken"] : undefined;
    return isObject(special) ? String(special["id"]) : undefined;
  });
}

/**
 * The prompt of a pair of texts, if one token separates them. For vocabularies other than WordPiece, engines insert
 * two, unless there is a prompt.
 */
function pairPrompt(tokenizer: JsonObject | undefined): Record<string, WriteValue> {
  const { post_processor: processor } = tokenizer ?? {};
  const pair = isObject(processor) && processor["type"] === "TemplateProcessing" ? processor["pair"] : undefined;
  if (isWordPiece(tokenizer) || !Array.isArray(pair)) return {};
  const parts = pair.map((part: unknown) => {
    const [special, text] = isObject(part) ? [part["SpecialToken"], part["Sequence"]] : [];
    if (isObject(special)) return String(special["id"]);
    return isObject(text) ? (text["id"] === "A" ? "{query}" : "{document}") : "";
  });
  const between = parts.indexOf("{document}") - parts.indexOf("{query}");
  return between === 2 ? { "tokenizer.chat_template.rerank": parts.join("") } : {};
}

/** A separate file precedes the tokenizer's configuration, which may hold one template or several by name. */
export async function templateMetadata(
  folder: ModelFolder,
  tokenizerConfig: JsonObject,
): Promise<Record<string, WriteValue>> {
  const own =
    (await findText(folder, "chat_template.jinja")) ??
    (await findJson(folder, "chat_template.json"))?.["chat_template"];
  const template = own ?? tokenizerConfig["chat_template"];
  const named = Array.isArray(template) ? template.filter(isObject) : [{ name: "default", template }];
  const found: Record<string, string> = {};
  for (const { name, template: text } of named) {
    if (typeof text !== "string" || typeof name !== "string" || !/^\w+$/.test(name)) continue;
    if (text.length > TEMPLATE_CHARS_MAX) {
      const expected = `at most ${TEMPLATE_CHARS_MAX} characters`;
      throw new AppError("bad_file", `${folder.label}: chat template: expected ${expected}, got ${text.length}`);
    }
    found[name === "default" ? "tokenizer.chat_template" : `tokenizer.chat_template.${name}`] = text;
  }
  return found;
}
