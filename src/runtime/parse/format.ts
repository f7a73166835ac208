/**
 * What a tool-call format is: a way of writing calls inside a model's text, recognised by the template that teaches it.
 */

export type ParsedEvent =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "toolCall"; readonly name: string; readonly arguments: Record<string, unknown> };

/**
 * Takes a model's text piece by piece. However it is cut, the same text and the same calls come out, each as early as
 * is sure.
 */
export interface ToolCallParser {
  push(text: string): ParsedEvent[];
  /** What was held back until more text could decide it. */
  end(): ParsedEvent[];
}

export interface ToolFormat {
  /** Whether a prompt template shows calls in this format. */
  isIn(templateSource: string): boolean;
  makeParser(): ToolCallParser;
}

/** How many characters at the end of `text` may be the beginning of `tag`. */
export function heldLength(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(tag.slice(0, length))) return length;
  }
  return 0;
}
