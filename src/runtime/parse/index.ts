/**
 * Tool-call formats by name, and which of them a model's template uses.
 */
import type { ToolCallParser, ToolFormat } from "./format.ts";
import { hermes } from "./hermes.ts";

export type { ParsedEvent, ToolCallParser } from "./format.ts";

export const toolFormats = { hermes } as const satisfies Record<string, ToolFormat>;

export type ToolFormatName = keyof typeof toolFormats;

/** Undefined: the template shows no calls, or none in a format we know. */
export function detectToolFormat(templateSource: string): ToolFormatName | undefined {
  const names = Object.keys(toolFormats) as ToolFormatName[]; // the keys of a literal
  return names.find((name) => toolFormats[name].isIn(templateSource));
}

export const makeToolCallParser = (name: ToolFormatName): ToolCallParser => toolFormats[name].makeParser();
