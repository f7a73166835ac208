/** Pooling in sentence-transformers, and the matrix after it, from its files in a model folder. */
import { AppError, isObject } from "../../base/index.ts";
import { describe, findJson, findText, parseObject, type JsonObject, type ModelFolder } from "./folder.ts";
import { readSafetensors, type SafeTensor } from "./safetensors.ts";

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

/**
 * The number of the pooling; undefined if no file sets it. Throws `unsupported` for a pooling outside `POOLING`.
 * @param takesDense true if the model supports a matrix after the pooling
 */
export async function poolingType(folder: ModelFolder, takesDense = false): Promise<number | undefined> {
  await checkModules(folder, takesDense);
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

/** The name of the identity, in sentence-transformers, for a matrix without an activation. */
const LINEAR = "torch.nn.modules.linear.Identity";
/** The name of the matrix in tables of tensors. */
export const DENSE = "dense_2.linear";

/**
 * The matrix that sentence-transformers applies after pooling, named `DENSE`; empty without one. Throws
 * `unsupported` for one that is not linear.
 */
export async function denseTensors(folder: ModelFolder): Promise<SafeTensor[]> {
  const path = (await modulesOf(folder)).find(isDense)?.["path"];
  if (typeof path !== "string") return [];
  const { label, files } = folder;
  const act = (await findJson(folder, `${path}/config.json`))?.["activation_function"];
  if (act !== LINEAR) {
    const what = `${label}: '${path}/config.json': 'activation_function'`;
    throw new AppError("unsupported", `${what}: expected '${LINEAR}', got ${describe(act)}`);
  }
  const file = `${path}/model.safetensors`;
  const place = files.get(file);
  if (place === undefined) throw new AppError("bad_file", `${label}: expected a file '${file}', got none`);
  const tensors = await readSafetensors(place, `${label}: '${file}'`);
  return tensors.map((tensor) => ({ ...tensor, name: tensor.name.replace(/^linear\./, `${DENSE}.`) }));
}

const isDense = ({ type }: JsonObject): boolean => String(type).endsWith(".Dense");

async function modulesOf(folder: ModelFolder): Promise<readonly JsonObject[]> {
  const text = await findText(folder, "modules.json");
  if (text === undefined) return [];
  const { modules } = parseObject(`{"modules":${text}}`, `${folder.label}: 'modules.json'`); // the file holds a list
  return [modules].flat().map((module) => (isObject(module) ? module : { type: module }));
}

/**
 * Refuses modules that sentence-transformers would run after the model, except pooling, normalization, and one matrix
 * if `takesDense`.
 */
async function checkModules(folder: ModelFolder, takesDense: boolean): Promise<void> {
  let room = takesDense ? 1 : 0;
  const isKnown = (module: JsonObject): boolean =>
    /\.(Transformer|Pooling|Normalize)$/.test(String(module["type"])) || (isDense(module) && room-- > 0);
  const other = (await modulesOf(folder)).find((module) => !isKnown(module));
  if (other === undefined) return;
  const known = takesDense ? "Transformer, Pooling, one Dense and Normalize" : "Transformer, Pooling and Normalize";
  throw new AppError(
    "unsupported",
    `${folder.label}: 'modules.json': expected ${known}, got ${describe(other["type"])}`,
  );
}
