/**
 * Messages and tools as prompt templates take them: the shapes that clients send; callers may carry extra fields.
 */

export interface PromptToolCall {
  readonly id?: string;
  readonly function: { readonly index?: number; readonly name: string; readonly arguments: Record<string, unknown> };
}

export interface PromptMessage {
  readonly role: string;
  readonly content: string;
  readonly thinking?: string;
  /** Whatever the caller knows images by. */
  readonly images?: readonly unknown[];
  /** Where in `content` each of them stands, in UTF-16 units, in order; left out: all before it. */
  readonly imagesAt?: readonly number[];
  readonly tool_calls?: readonly PromptToolCall[];
  readonly tool_name?: string;
  readonly tool_call_id?: string;
  /** What it says came from outside: texts of control tokens in it are text. */
  readonly isOutside?: boolean;
}

export interface PromptTool {
  readonly type: string;
  readonly function: { readonly name: string; readonly description?: string; readonly parameters?: unknown };
}

/** A string is a level: `low`, `medium`, `high`, `max`. */
export type Think = boolean | string;

/** What text stands between messages that were merged into one. */
const BLANK_LINE = "\n\n";

/** Neighbours of one role become one message, tool results excepted: each belongs to its own call. */
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

/** What both say, thought, show and call. */
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

/** Every system message, wherever it stands. */
export const systemText = (messages: readonly PromptMessage[]): string =>
  messages
    .filter((message) => message.role === "system")
    .map((message) => message.content)
    .join(BLANK_LINE);
