/** Messages and tools for prompt templates, in the clients' form; callers may add fields. */

export interface PromptToolCall {
  readonly id?: string;
  readonly function: { readonly index?: number; readonly name: string; readonly arguments: Record<string, unknown> };
}

export interface PromptMessage {
  readonly role: string;
  readonly content: string;
  readonly thinking?: string;
  /** The caller's handles of images. */
  readonly images?: readonly unknown[];
  /** Position of each image in `content`, in UTF-16 units, ascending; omitted: all images come first. */
  readonly imagesAt?: readonly number[];
  readonly tool_calls?: readonly PromptToolCall[];
  readonly tool_name?: string;
  readonly tool_call_id?: string;
  /** True for content from outside: control tokens in it stay text. */
  readonly isOutside?: boolean;
}

export interface PromptTool {
  readonly type: string;
  readonly function: { readonly name: string; readonly description?: string; readonly parameters?: unknown };
}

/** A string is a level: `low`, `medium`, `high`, `max`. */
export type Think = boolean | string;

/** The separator between merged messages. */
const BLANK_LINE = "\n\n";

/** Neighbours of one role become one message, except tool results: each belongs to its own call. */
export function mergeNeighbours(messages: readonly PromptMessage[]): PromptMessage[] {
  const merged: PromptMessage[] = [];
  for (const message of messages) {
    const last = merged.at(-1);
    if (last && last.role === message.role && message.role !== "tool") {
      merged[merged.length - 1] = joined(last, message);
    } else {
      merged.push(message);
    }
  }
  return merged;
}

/** Combines the content, thoughts, images and calls of two messages. */
function joined(first: PromptMessage, second: PromptMessage): PromptMessage {
  const thinking = [first.thinking, second.thinking].filter(Boolean).join(BLANK_LINE);
  const calls = [...(first.tool_calls ?? []), ...(second.tool_calls ?? [])];
  const images = [...(first.images ?? []), ...(second.images ?? [])];
  return {
    ...first,
    content: first.content + BLANK_LINE + second.content,
    ...(thinking ? { thinking } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(images.length > 0 ? { images } : {}),
  };
}

export const systemText = (messages: readonly PromptMessage[]): string =>
  messages
    .filter((message) => message.role === "system")
    .map((message) => message.content)
    .join(BLANK_LINE);
