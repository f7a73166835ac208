/** What is to be known of a template by those who do not render with it: what it can do, and how answers are marked. */
import { toolCallTag } from "./go-prompt.ts";
import { readingOf } from "./named.ts";
import { capabilitiesOf, type Capabilities, type PromptTemplate } from "./prompt.ts";
import { thinkingTagsOf, type ThinkingTags } from "./thinking.ts";

/** Plain data, for messages between processes. */
export interface TemplateFacts {
  readonly kind: PromptTemplate["kind"];
  readonly source: string;
  readonly capabilities: Capabilities;
  /** Undefined where the model does not think, as far as its template tells. */
  readonly thinking: ThinkingTags | undefined;
  /** The text in front of a tool call, where a Go template shows one. */
  readonly callTag: string | undefined;
  /** The tool-call format that the model's parser names; undefined: as the template shows. */
  readonly format?: string;
}

/** @param parser the name that the model's configuration gives, where it does */
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

/** What a model can do by its template and, where it names one, its parser. */
export function capabilitiesWith(prompt: PromptTemplate, parser: string | undefined): Capabilities {
  const own = capabilitiesOf(prompt);
  const reading = readingOf(parser);
  if (!reading) return own;
  return { ...own, tools: own.tools && reading.tools, thinking: reading.thinking !== undefined };
}
