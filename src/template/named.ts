/**
 * Names that a model's configuration may give for how its prompts are made (RENDERER) and how its answers are read
 * (PARSER), as models in circulation have them.
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

/** How a parser of that name reads answers. */
interface Reading {
  /** The tool-call format, by its name in `runtime/parse`. */
  readonly format: string;
  readonly tools: boolean;
  /** What stands around thoughts; undefined: it finds none. */
  readonly thinking?: ThinkingTags;
}

const THINK: ThinkingTags = { open: "<think>", close: "</think>" };
const MISTRAL: ThinkingTags = { open: "[THINK]", close: "[/THINK]" };
const COHERE: ThinkingTags = { open: "<|START_THINKING|>", close: "<|END_THINKING|>" };
const GEMMA: ThinkingTags = { open: "<|channel>thought", close: "<channel|>" };
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
  glimmer: { format: "glimmer", tools: true, thinking: THINK },
  passthrough: { format: "plain", tools: false },
} as const satisfies Record<string, Reading>;

export type Parser = keyof typeof READINGS;

export const PARSERS = Object.keys(READINGS) as Parser[]; // the keys of a literal

/** Undefined for an unknown name: answers are then read as the template says. */
export const readingOf = (parser: string | undefined): Reading | undefined =>
  parser !== undefined && Object.hasOwn(READINGS, parser) ? READINGS[parser as Parser] : undefined; // just asked
