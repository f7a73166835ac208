/**
 * The tags around a model's thoughts, derived from its template. A Go template prints past thoughts between two texts;
 * a Jinja template may print them, or only name the tags by which it removes them.
 */
import { thinkingTags, type GoPrompt } from "./go-prompt.ts";

export interface ThinkingTags {
  readonly open: string;
  readonly close: string;
}

/** Known tags; a model thinks between tags that its template contains. */
const TAGS: readonly ThinkingTags[] = [
  { open: "<think>", close: "</think>" },
  { open: "[THINK]", close: "[/THINK]" }, // Mistral
  { open: "<|START_THINKING|>", close: "<|END_THINKING|>" }, // Command A
  { open: "<|channel>thought", close: "<channel|>" }, // Gemma 4
  { open: "<seed:think>", close: "</seed:think>" }, // Seed OSS
  { open: " to=self<|message|>", close: "<|eom|>" }, // Glimmer
  { open: "<mm:think>", close: "</mm:think>" }, // MiniMax M3
  { open: "<|inner_prefix|>", close: "<|inner_suffix|>" }, // Apertus
  { open: "Here are my reasoning steps:", close: "[BEGIN FINAL RESPONSE]" }, // Apriel
  { open: "<|think|>", close: "<|end|>" }, // Solar Open
  { open: "<|channel|>analysis<|message|>", close: "<|end|>" }, // gpt-oss
];

/** Hunyuan 3, whose templates append a suffix to the names. */
const HUNYUAN: ThinkingTags = { open: "<think:opensource>", close: "</think:opensource>" };

/** Kimi K3, whose template composes its tags. */
const KIMI_K3: ThinkingTags = { open: "<|open|>think<|sep|>", close: "<|close|>think<|sep|>" };

/** Undefined if the template shows no thinking. */
export function thinkingTagsOf(
  prompt: GoPrompt | { readonly kind: "jinja"; readonly source: string },
): ThinkingTags | undefined {
  return prompt.kind === "go" ? thinkingTags(prompt) : jinjaThinkingTags(prompt.source);
}

export function jinjaThinkingTags(source: string): ThinkingTags | undefined {
  const dropsThinking = /\.split\(\s*['"]<\/think>['"]/.test(source) && !/reasoning_content|<SPECIAL_12>/.test(source);
  if (dropsThinking) return TAGS[0];
  if (/<\|channel\|>['" ~+]*analysis/.test(source)) return TAGS.at(-1);
  if (source.includes(":opensource") && source.includes("<think")) return HUNYUAN;
  if (["<|open|>", "<|close|>", "<|sep|>", "think"].every((part) => source.includes(part))) return KIMI_K3;
  return TAGS.find(({ open, close }) => source.includes(open) && source.includes(close));
}
