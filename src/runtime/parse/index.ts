/**
 * Tool-call formats by name, and detection by a model's template. The first match counts, so a format whose signs are
 * part of another's comes after it.
 */
import type { ToolFormat } from "./format.ts";
import { deepseek } from "./deepseek.ts";
import { functionTags } from "./function-tags.ts";
import { functionary } from "./functionary.ts";
import { functionGemma, gemma4 } from "./gemma.ts";
import { glimmer } from "./glimmer.ts";
import { glm } from "./glm.ts";
import { harmony } from "./harmony.ts";
import { hunyuan } from "./hunyuan.ts";
import { dsml, minimax } from "./invoke.ts";
import {
  apertus,
  cohere,
  commandR,
  firefunction,
  gigachat,
  granite,
  hermes,
  jamba,
  nemotron,
  phi4,
} from "./json-between-tags.ts";
import { kimiK3 } from "./kimi-k3.ts";
import { kimi } from "./kimi.ts";
import { llama3 } from "./llama3.ts";
import { minicpm } from "./minicpm.ts";
import { minimaxM3 } from "./minimax-m3.ts";
import { mistral } from "./mistral.ts";
import { plain } from "./plain.ts";
import { lfm2, olmo3 } from "./python-between-tags.ts";
import { solar } from "./solar.ts";

export const toolFormats = {
  harmony,
  kimiK3,
  minimaxM3,
  minimax,
  dsml,
  glimmer,
  hunyuan,
  solar,
  kimi,
  functionary,
  apertus,
  gigachat,
  minicpm,
  glm,
  functionTags,
  hermes,
  mistral,
  deepseek,
  gemma4,
  functionGemma,
  lfm2,
  olmo3,
  phi4,
  granite,
  nemotron,
  jamba,
  cohere,
  commandR,
  firefunction,
  llama3,
  plain,
} as const satisfies Record<string, ToolFormat>;

export type ToolFormatName = keyof typeof toolFormats;

/** `plain` if the template shows calls in none of the other formats, or shows no calls. */
export function detectToolFormat(templateSource: string): ToolFormatName {
  const names = Object.keys(toolFormats) as ToolFormatName[]; // the keys of a literal
  return names.find((name) => toolFormats[name].isIn(templateSource)) ?? "plain";
}
