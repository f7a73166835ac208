/** Facts about a template for code that does not render it: its capabilities, and the marks in answers. */
import { toolCallTag } from "./go-prompt.ts";
import { readingOf } from "./named.ts";
import { capabilitiesOf, type Capabilities, type PromptTemplate } from "./prompt.ts";
import { thinkingTagsOf, type ThinkingTags } from "./thinking.ts";

/** Plain data, for messages between processes. */
export interface TemplateFacts {
  readonly kind: PromptTemplate["kind"];
  readonly source: string;
  readonly capabilities: Capabilities;
  /** Undefined if the template shows no thinking. */
  readonly thinking: ThinkingTags | undefined;
  /** The text before a tool call, if a Go template shows one. */
  readonly callTag: string | undefined;
  /** The tool-call format that the model's parser names; undefined: the template's. */
  readonly format?: string;
}

/** @param parser the name in the model's configuration, if any */
export function templateFacts(prompt: PromptTemplate, parser?: string): TemplateFacts {
  const reading = readingOf(parser);
  return {
    kind: prompt.kind,
    source: prompt.source,
    capabilities: capabilitiesWith(prompt, parser),
    thinking: reading ? reading.thinking : thinkingTagsOf(prompt),
    callTag: prompt.kind === "go" ? toolCallTag(prompt) : undefined,
    ...(reading ? { format: reading.format } : {}),
  };
}

/** Capabilities of a model by its template and, if named, its parser. */
export function capabilitiesWith(prompt: PromptTemplate, parser: string | undefined): Capabilities {
  const own = capabilitiesOf(prompt);
  const reading = readingOf(parser);
  if (!reading) return own;
  return { ...own, tools: own.tools && reading.tools, thinking: reading.thinking !== undefined };
}
