/** What sentence-transformers does with the vectors of a text's tokens, as its files in a model folder describe it. */
import { AppError } from "../base/errors.ts";
import { describe, findJson, findText, isObject, parseObject, type ModelFolder } from "./folder.ts";

/** What the vectors of a text's tokens become one by: the number of llama.cpp's `llama_pooling_type`. */
const POOLING = { pooling_mode_mean_tokens: 1, pooling_mode_cls_token: 2, pooling_mode_lasttoken: 3 } as const;

/** The number of the pooling, or undefined where no file says. Throws `unsupported` for what is not among `POOLING`. */
export async function poolingType(folder: ModelFolder): Promise<number | undefined> {
  await checkModules(folder);
  const pooling = await findJson(folder, "1_Pooling/config.json");
  if (!pooling) return undefined;
  const modes = Object.entries(pooling).filter(([key, value]) => key.startsWith("pooling_mode_") && value === true);
  const [type] = Object.entries(POOLING).filter(([key]) => modes.some(([mode]) => mode === key));
  if (modes.length === 1 && type) return type[1];
  const found = modes.map(([mode]) => mode).join(", ") || "none";
  const expected = `one of ${Object.keys(POOLING).join(", ")}`;
  throw new AppError("unsupported", `${folder.label}: '1_Pooling/config.json': expected ${expected}, got ${found}`);
}

/** What sentence-transformers runs after the model: beside pooling and normalization, nothing of it is run here. */
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
