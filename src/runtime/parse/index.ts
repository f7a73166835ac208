/**
 * Tool-call formats by name, and which of them a model's template uses. The first that fits counts, so one whose signs
 * are part of another's comes later.
 */
import type { ToolFormat } from "./format.ts";
import { deepseek } from "./deepseek.ts";
import { functionTags } from "./function-tags.ts";
import { functionGemma, gemma4 } from "./gemma.ts";
import { glm } from "./glm.ts";
import { harmony } from "./harmony.ts";
import { glimmer, minimax } from "./invoke.ts";
import { cohere, commandR, firefunction, granite, hermes, jamba, nemotron, phi4 } from "./json-between-tags.ts";
import { llama3 } from "./llama3.ts";
import { mistral } from "./mistral.ts";
import { plain } from "./plain.ts";
import { lfm2, olmo3 } from "./python-between-tags.ts";

export const toolFormats = {
  harmony,
  minimax,
  glimmer,
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

/** `plain` where a template shows calls in no format of the others, or none at all. */
export function detectToolFormat(templateSource: string): ToolFormatName {
  const names = Object.keys(toolFormats) as ToolFormatName[]; // the keys of a literal
  return names.find((name) => toolFormats[name].isIn(templateSource)) ?? "plain";
}
