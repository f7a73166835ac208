/**
 * Names in a model's configuration for its prompt template (RENDERER) and its answer parser (PARSER), as in published
 * models.
 */
import type { ThinkingTags } from "./thinking.ts";

export const RENDERERS = [
  "qwen3-coder",
  "qwen3-vl-instruct",
  "qwen3-vl-thinking",
  "qwen3.5",
  "qwen3.8",
  "ornith",
  "cogito",
  "deepseek3.1",
  "olmo3",
  "olmo3.1",
  "olmo3-think",
  "olmo3-32b-think",
  "nemotron-3-nano",
  "nemotron-3.5-nano",
  "gemma4",
  "gemma4-small",
  "gemma4-large",
  "functiongemma",
  "glm-4.7",
  "glm-ocr",
  "lfm2",
  "lfm2-thinking",
  "laguna",
  "poolside-v1",
  "cohere",
  "glimmer",
] as const;

export type Renderer = (typeof RENDERERS)[number];

/** Number of parameters from which a Gemma 4 counts as large. */
const LARGE = 12e9;
const UNITS: Readonly<Record<string, number>> = { K: 1e3, M: 1e6, B: 1e9, T: 1e12 };

/**
 * The renderer of a model. `gemma4` has two variants: the model's name decides, else its size.
 * @param model.size as in `25.2B`
 */
export function rendererOf(renderer: string | undefined, model: { name: string; size?: string | undefined }) {
  if (renderer !== "gemma4") return renderer;
  const name = model.name.toLowerCase();
  if (/e[24]b/.test(name)) return "gemma4-small";
  const [, count, unit = ""] = /^([\d.]+)\s*([KMBT])$/i.exec(model.size?.trim() ?? "") ?? [];
  const parameters = Number(count) * (UNITS[unit.toUpperCase()] ?? NaN);
  return /12b|26b|31b/.test(name) || parameters >= LARGE ? "gemma4-large" : "gemma4-small";
}

interface Names {
  readonly renderer: Renderer;
  readonly parser: Parser;
}

const NEMOTRON: Names = { renderer: "nemotron-3-nano", parser: "nemotron-3-nano" };
const QWEN35: Names = { renderer: "qwen3.5", parser: "qwen3.5" };
const BY_ARCHITECTURE: Readonly<Record<string, Names>> = {
  gemma4: { renderer: "gemma4", parser: "gemma4" },
  laguna: { renderer: "laguna", parser: "laguna" },
  nemotron_h: NEMOTRON,
  nemotron_h_moe: NEMOTRON,
  nemotron_h_omni: NEMOTRON,
  qwen35: QWEN35,
  qwen35moe: QWEN35,
  glmocr: { renderer: "glm-ocr", parser: "glm-ocr" },
};

/** The renderer and the parser of an architecture whose files have no template. */
export const namesFor = (architecture: string): Names | undefined =>
  Object.hasOwn(BY_ARCHITECTURE, architecture) ? BY_ARCHITECTURE[architecture] : undefined;

/** Rules for parsing answers, by the parser's name. */
interface Reading {
  /** The tool-call format, by its name in `runtime/parse`. */
  readonly format: string;
  readonly tools: boolean;
  /** Tags around thoughts; undefined: the parser looks for none. */
  readonly thinking?: ThinkingTags;
}

const THINK: ThinkingTags = { open: "<think>", close: "</think>" };
const MISTRAL: ThinkingTags = { open: "[THINK]", close: "[/THINK]" };
const COHERE: ThinkingTags = { open: "<|START_THINKING|>", close: "<|END_THINKING|>" };
const GEMMA: ThinkingTags = { open: "<|channel>thought", close: "<channel|>" };
const GLIMMER: ThinkingTags = { open: " to=self<|message|>", close: "<|eom|>" };
const HARMONY: ThinkingTags = { open: "<|channel|>analysis<|message|>", close: "<|end|>" };

const READINGS = {
  qwen3: { format: "hermes", tools: true },
  "qwen3-thinking": { format: "hermes", tools: true, thinking: THINK },
  "qwen3.5": { format: "functionTags", tools: true, thinking: THINK },
  ornith: { format: "functionTags", tools: true, thinking: THINK },
  "qwen3-coder": { format: "functionTags", tools: true },
  "qwen3-vl-instruct": { format: "hermes", tools: true },
  "qwen3-vl-thinking": { format: "hermes", tools: true, thinking: THINK },
  ministral: { format: "mistral", tools: true, thinking: MISTRAL },
  harmony: { format: "harmony", tools: true, thinking: HARMONY },
  cogito: { format: "deepseek", tools: true, thinking: THINK },
  deepseek3: { format: "deepseek", tools: true, thinking: THINK },
  olmo3: { format: "olmo3", tools: true },
  "olmo3-think": { format: "plain", tools: false, thinking: THINK },
  "nemotron-3-nano": { format: "functionTags", tools: true, thinking: THINK },
  "nemotron-3.5-nano": { format: "functionTags", tools: true, thinking: THINK },
  functiongemma: { format: "functionGemma", tools: true },
  "glm-4.7": { format: "glm", tools: true, thinking: THINK },
  "glm-ocr": { format: "plain", tools: false, thinking: THINK },
  gemma4: { format: "gemma4", tools: true, thinking: GEMMA },
  "gemma4-no-thinking": { format: "gemma4", tools: true },
  lfm2: { format: "lfm2", tools: true },
  "lfm2-thinking": { format: "lfm2", tools: true, thinking: THINK },
  laguna: { format: "glm", tools: true, thinking: THINK },
  "poolside-v1": { format: "glm", tools: true, thinking: THINK },
  cohere: { format: "cohere", tools: true, thinking: COHERE },
  glimmer: { format: "glimmer", tools: true, thinking: GLIMMER },
  passthrough: { format: "plain", tools: false },
} as const satisfies Record<string, Reading>;

export type Parser = keyof typeof READINGS;

export const PARSERS = Object.keys(READINGS) as Parser[]; // the keys of a literal

/** Undefined for an unknown name: answers are then parsed as the template says. */
export const readingOf = (parser: string | undefined): Reading | undefined =>
  parser !== undefined && Object.hasOwn(READINGS, parser) ? READINGS[parser as Parser] : undefined; // checked above
