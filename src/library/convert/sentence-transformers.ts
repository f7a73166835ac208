/** Pooling in sentence-transformers, from its files in a model folder. */
import { AppError, isObject } from "../../base/index.ts";
import { describe, findJson, findText, parseObject, type ModelFolder } from "./folder.ts";

/** Names of poolings, with the numbers of llama.cpp's `llama_pooling_type`. */
const POOLING: Readonly<Record<string, number>> = { mean: 1, cls: 2, lasttoken: 3 };
/** Files written before sentence-transformers 6 have a flag per pooling. */
const FLAGS: Readonly<Record<string, string>> = {
  pooling_mode_mean_tokens: "mean",
  pooling_mode_cls_token: "cls",
  pooling_mode_lasttoken: "lasttoken",
};

/** Room for the special tokens around a text, and for some of it. */
const TEXT_LENGTH_MIN = 4;

/** The number of the pooling; undefined if no file sets it. Throws `unsupported` for a pooling outside `POOLING`. */
export async function poolingType(folder: ModelFolder): Promise<number | undefined> {
  await checkModules(folder);
  const pooling = await findJson(folder, "1_Pooling/config.json");
  if (!pooling) return undefined;
  const flags = Object.keys(pooling).filter((key) => key.startsWith("pooling_mode_") && pooling[key] === true);
  const modes = [pooling["pooling_mode"] ?? flags.map((flag) => FLAGS[flag] ?? flag)].flat().map(String);
  const [mode = "none"] = modes;
  if (modes.length === 1 && Object.hasOwn(POOLING, mode)) return POOLING[mode];
  const found = modes.join(", ") || "none";
  const expected = `one of ${Object.keys(POOLING).join(", ")}`;
  throw new AppError("unsupported", `${folder.label}: '1_Pooling/config.json': expected ${expected}, got ${found}`);
}

/**
 * Parameters that make requests treat texts as sentence-transformers does, if any are needed: it truncates at
 * `max_seq_length` tokens, often earlier than the positions require.
 * @param ctxLen context length of the converted model
 */
export async function textOptions(
  folder: ModelFolder,
  ctxLen: number,
): Promise<{ parameters?: Record<string, number> }> {
  const length = (await findJson(folder, "sentence_bert_config.json"))?.["max_seq_length"];
  const isShorter = Number.isInteger(length) && Number(length) >= TEXT_LENGTH_MIN && Number(length) < ctxLen;
  return isShorter ? { parameters: { num_ctx: Number(length) } } : {};
}

/** Refuses modules that sentence-transformers would run after the model, except pooling and normalization. */
async function checkModules(folder: ModelFolder): Promise<void> {
  const { label } = folder;
  const text = await findText(folder, "modules.json");
  if (text === undefined) return;
  const { modules } = parseObject(`{"modules":${text}}`, `${label}: 'modules.json'`); // the file holds a list
  const types = [modules].flat().map((module) => (isObject(module) ? module["type"] : module));
  const other = types.find((type) => !/\.(Transformer|Pooling|Normalize)$/.test(String(type)));
  if (other === undefined) return;
  throw new AppError(
    "unsupported",
    `${label}: 'modules.json': expected Transformer, Pooling and Normalize, got ${describe(other)}`,
  );
}
