/** What is to be known of a template by those who do not render with it: what it can do, and how answers are marked. */
import { toolCallTag } from "./go-prompt.ts";
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
}

export const templateFacts = (prompt: PromptTemplate): TemplateFacts => ({
  kind: prompt.kind,
  source: prompt.source,
  capabilities: capabilitiesOf(prompt),
  thinking: thinkingTagsOf(prompt),
  callTag: prompt.kind === "go" ? toolCallTag(prompt) : undefined,
});
