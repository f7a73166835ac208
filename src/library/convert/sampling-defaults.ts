/** Recommended sampling options from `generation_config.json`, under the keys of llama.cpp's converter. */
import type { WriteValue } from "../../engine/formats/index.ts";
import { findJson, type ModelFolder } from "./folder.ts";

/** Names in that file by key without `general.sampling.`; integers there are integers in a GGUF too. */
const NAMES: Readonly<Record<string, string>> = {
  temp: "temperature",
  top_k: "top_k",
  top_p: "top_p",
  min_p: "min_p",
  penalty_repeat: "repetition_penalty",
};
const WHOLE = "top_k";
const MAX = 2 ** 31 - 1;

export async function samplingDefaults(folder: ModelFolder): Promise<Record<string, WriteValue>> {
  const config = (await findJson(folder, "generation_config.json")) ?? {};
  const found: Record<string, WriteValue> = {};
  for (const [key, name] of Object.entries(NAMES)) {
    const value = config[name];
    if (typeof value !== "number" || Math.abs(value) > MAX) continue; // null means absent
    found[`general.sampling.${key}`] = key === WHOLE ? { i32: Math.trunc(value) } : { f32: value };
  }
  return found;
}
