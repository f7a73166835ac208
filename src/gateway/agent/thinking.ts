/** Thinking levels as people write them, and as models take them. */
import type { Think } from "../../runtime/portable.ts";
import { THINKING_LEVELS } from "./config.ts";

export type ThinkingLevel = (typeof THINKING_LEVELS)[number];

const SYNONYMS: Readonly<Record<string, ThinkingLevel>> = {
  ...Object.fromEntries(THINKING_LEVELS.map((level) => [level, level])),
  none: "off",
  disable: "off",
  disabled: "off",
  on: "low",
  enable: "low",
  enabled: "low",
  min: "minimal",
  think: "minimal",
  mid: "medium",
  med: "medium",
  ultra: "high",
  highest: "high",
  xhigh: "max",
  "x-high": "max",
};

const THINK: Readonly<Record<ThinkingLevel, Think>> = {
  off: false,
  minimal: "low",
  low: "low",
  medium: "medium",
  high: "high",
  max: "max",
};

/** Undefined if the text is not a level; then the default level applies. */
export function parseThinking(text: string): ThinkingLevel | undefined {
  const word = text.trim().toLowerCase();
  return Object.hasOwn(SYNONYMS, word) ? SYNONYMS[word] : undefined;
}

export const thinkOf = (level: ThinkingLevel): Think => THINK[level];
