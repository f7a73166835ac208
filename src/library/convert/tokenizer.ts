/**
 * The tokenizer of a model folder as GGUF metadata: from SentencePiece's `tokenizer.model` if present, else from
 * `tokenizer.json` or `tiktoken.model`, with the special tokens of all files; RWKV's is in a separate file.
 */
import { AppError, isObject } from "../../base/index.ts";
import type { WriteValue } from "../../engine/formats/index.ts";
import { u32, type Architecture } from "./architecture.ts";
import { describe, findBytes, findJson, findText, type JsonObject, type ModelFolder } from "./folder.ts";
import { parseSentencePieceModel } from "./sentence-piece-model.ts";
import { specialMetadata, templateMetadata } from "./special-ids.ts";
import { isByteLevel, readTokenizerJson } from "./tokenizer-json.ts";
import { readTiktoken } from "./tiktoken.ts";
import type { Tokens, TokensPlace } from "./tokens.ts";
import { readWorld, WORLD_FILE } from "./world.ts";
import { addedTokens, completeVocabulary, parseAddedToken, vocabularyMetadata, type AddedToken } from "./vocabulary.ts";

interface TokenizerSources {
  readonly folder: ModelFolder;
  /** `config.json` */
  readonly config: JsonObject;
  readonly architecture: Partial<Pick<Architecture, "arch">> &
    Pick<Architecture, "addSpacePrefix" | "textTokens" | "tiktoken" | "vocabulary" | "ranksPairs">;
  /** Rows of the embedding. */
  readonly rows: number;
}

interface ConvertedTokenizer {
  readonly metadata: Record<string, WriteValue>;
  readonly leftOut: readonly AddedToken[];
}

/** Throws `bad_file` if the tokenizer is missing or damaged, and `unsupported` for unknown kinds. */
export async function convertTokenizer(sources: TokenizerSources): Promise<ConvertedTokenizer> {
  const { folder, config, architecture, rows } = sources;
  const { textTokens } = architecture;
  const place = { rows, label: folder.label, ...(textTokens && { textTokens }) };
  if (architecture.vocabulary === "world") return convertWorld(folder, place);
  const json = await findJson(folder, "tokenizer.json");
  const isWhole = json && (textTokens || isByteLevel(json));
  const model = isWhole ? undefined : await findBytes(folder, "tokenizer.model");
  const ranks = json || model ? undefined : await findText(folder, "tiktoken.model");
  if (ranks !== undefined && architecture.tiktoken === undefined) {
    const what = "a vocabulary of 'tiktoken.model' is not supported for this architecture";
    throw new AppError("unsupported", `${folder.label}: ${what}`);
  }
  if (!json && !model && ranks === undefined) {
    throw new AppError("bad_file", `${folder.label}: expected 'tokenizer.json' or 'tokenizer.model', got neither`);
  }
  const { metadata, pieces, leftOut } = model
    ? readSentencePiece(model, await furtherTokens(folder, json), place)
    : ranks !== undefined
      ? readTiktoken(ranks, { ...place, added: await furtherTokens(folder, json), pre: architecture.tiktoken! })
      : readTokenizerJson(json!, place); // at least one of them exists
  const special = await specialMetadata({
    folder,
    config,
    tokenizer: json,
    pieces,
    ranksPairs: architecture.ranksPairs,
  });
  const all: Record<string, WriteValue> = { ...metadata, ...special };
  const prefix = architecture.addSpacePrefix ?? (await configuredPrefix(sources, model !== undefined));
  if (prefix !== undefined) all["tokenizer.ggml.add_space_prefix"] = prefix;
  // WordPiece begins with its class token, and loaders read the first token from this key.
  const first = all["tokenizer.ggml.model"] === "bert" ? all["tokenizer.ggml.cls_token_id"] : undefined;
  if (first !== undefined) all["tokenizer.ggml.bos_token_id"] ??= first;
  // Some families add BOS by default, which fails without an id.
  if (all["tokenizer.ggml.bos_token_id"] === undefined) all["tokenizer.ggml.add_bos_token"] = false;
  return { metadata: all, leftOut };
}

/** Other files of a folder may name other special tokens, which the vocabulary does not have. */
async function convertWorld(folder: ModelFolder, place: TokensPlace): Promise<ConvertedTokenizer> {
  const text = await findText(folder, WORLD_FILE);
  if (text === undefined) throw new AppError("bad_file", `${folder.label}: expected '${WORLD_FILE}', got none`);
  const { metadata, leftOut } = readWorld(text, place);
  const own = await templateMetadata(folder, (await findJson(folder, "tokenizer_config.json")) ?? {});
  return { metadata: { ...metadata, ...own }, leftOut };
}

/** For Llama's tokenizers the configuration overrides `tokenizer.model`, as in llama.cpp's converter. */
async function configuredPrefix({ folder, architecture }: TokenizerSources, isSentencePiece: boolean) {
  if (architecture.arch !== "llama" || !isSentencePiece) return undefined;
  const said = (await findJson(folder, "tokenizer_config.json"))?.["add_prefix_space"];
  return typeof said === "boolean" ? said : undefined;
}

function readSentencePiece(bytes: Uint8Array, added: readonly AddedToken[], place: TokensPlace): Tokens {
  const model = parseSentencePieceModel(bytes, place.label);
  const ids = { bos: model.bos, eos: model.eos, unknown: model.unknown, padding: model.padding };
  const leftOut = completeVocabulary(model, { added, ...place });
  const metadata: Record<string, WriteValue> = {
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.pre": "default",
    ...vocabularyMetadata(model),
    "tokenizer.ggml.add_space_prefix": model.addDummyPrefix,
  };
  for (const [word, id] of Object.entries(ids))
    if (id !== undefined) metadata[`tokenizer.ggml.${word}_token_id`] = u32(id);
  return { metadata, pieces: model.pieces, leftOut };
}

/** Tokens besides `tokenizer.model`, from any file that lists them; later files win. */
async function furtherTokens(folder: ModelFolder, json: JsonObject | undefined): Promise<AddedToken[]> {
  const found = new Map<number, AddedToken>();
  const add = (token: AddedToken): void => void found.set(token.id, token);
  const wrong = (name: string) => (got: unknown) =>
    new AppError("bad_file", `${folder.label}: '${name}': expected tokens with ids, got ${describe(got)}`);
  const plain = (await findJson(folder, "added_tokens.json")) ?? {};
  for (const [content, id] of Object.entries(plain)) {
    add(parseAddedToken({ content }, id, wrong("added_tokens.json")));
  }
  const decoder = (await findJson(folder, "tokenizer_config.json"))?.["added_tokens_decoder"] ?? {};
  if (!isObject(decoder)) throw wrong("tokenizer_config.json")(decoder);
  for (const [id, entry] of Object.entries(decoder)) {
    if (!isObject(entry)) throw wrong("tokenizer_config.json")(entry);
    add(parseAddedToken(entry, Number(id), wrong("tokenizer_config.json")));
  }
  if (json) addedTokens(json, folder.label).forEach(add);
  return [...found.values()];
}
