/**
 * Removes thoughts that clients send back as part of an answer: they fill the context, and models were not trained on
 * them.
 */

import type { PromptMessage } from "./messages.ts";

/** Models whose templates do not remove old thoughts. */
const FAMILIES: ReadonlySet<string> = new Set(["qwen3"]);
const NAMES: ReadonlySet<string> = new Set(["deepseek-r1"]);

const OPEN = "<think>";
const CLOSE = "</think>";

/** Returns whether old thoughts are removed for a model of that family or name, which its clients expect. */
export const forgetsThoughts = ({ family, name }: { family: string | undefined; name: string }): boolean =>
  FAMILIES.has(family ?? "") || NAMES.has(name.toLowerCase());

/** Removes the thoughts at the beginning of answers before the last question. */
export function withoutOldThoughts<T extends Answer>(messages: readonly T[]): T[] {
  const lastQuestion = messages.findLastIndex(({ role }) => role === "user");
  return messages.map((message, i) =>
    message.role === "assistant" && i < lastQuestion ? withoutThoughts(message) : message,
  );
}

type Answer = Pick<PromptMessage, "role" | "content" | "imagesAt">;

/** Images from the thoughts move to the beginning of the answer. */
function withoutThoughts<T extends Answer>(message: T): T {
  const content = answerOf(message.content);
  const { imagesAt } = message;
  const left = message.content.length - content.length;
  return { ...message, content, ...(imagesAt && { imagesAt: imagesAt.map((at) => Math.max(0, at - left)) }) };
}

/** The text after the thoughts at its beginning; empty if the thoughts do not end. */
function answerOf(content: string): string {
  const text = content.trimStart();
  if (!text.startsWith(OPEN)) return content;
  const end = text.indexOf(CLOSE);
  return end < 0 ? "" : text.slice(end + CLOSE.length).trimStart();
}
