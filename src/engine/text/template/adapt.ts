/**
 * Adapts conversations to a Jinja chat template: folds a system text into another message if the template has none,
 * splits messages with several calls, joins thoughts and text if the template prints only one of them, and names a
 * thinking level in the template's words.
 */
import type { PromptMessage, Think } from "./messages.ts";

/** Puts each system message at the beginning of the next message; without a next one, it becomes a user message. */
export function foldSystem(messages: readonly PromptMessage[]): PromptMessage[] {
  const folded: PromptMessage[] = [];
  let before = "";
  for (const message of messages) {
    if (message.role === "system") before += `${message.content}\n`;
    else if (before !== "" && message.role === "user") {
      folded.push({ ...message, content: before + message.content });
      before = "";
    } else folded.push(message);
  }
  if (before !== "") folded.push({ role: "user", content: before.trimEnd() });
  return folded;
}

/** One message per call, each followed by its result. Unchanged if no message has several calls. */
export function splitCalls(messages: readonly PromptMessage[]): readonly PromptMessage[] {
  if (!messages.some(hasSeveralCalls)) return messages;
  const split: PromptMessage[] = [];
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]!;
    if (!hasSeveralCalls(message)) {
      split.push(message);
      continue;
    }
    const results: PromptMessage[] = [];
    while (messages[i + 1]?.role === "tool") results.push(messages[++i]!);
    for (const [at, call] of message.tool_calls!.entries()) {
      split.push({ ...message, content: at === 0 ? message.content : "", tool_calls: [call] });
      const own = results.findIndex((result) => result.tool_call_id !== undefined && result.tool_call_id === call.id);
      split.push(...results.splice(Math.max(own, 0), 1));
    }
    split.push(...results);
  }
  return split;
}

/** Splits a message with text and calls into two. */
export function splitText({ tool_calls: calls, ...message }: PromptMessage): PromptMessage[] {
  const { thinking: _, ...rest } = message;
  return [message, { ...rest, content: "", ...(calls ? { tool_calls: calls } : {}) }];
}

/** Joins thoughts and text before calls, for a template that prints only one of them. */
export function joinThoughts(messages: readonly PromptMessage[]): PromptMessage[] {
  return messages.map((message) =>
    message.thinking && message.content && message.tool_calls?.length
      ? { ...message, thinking: `${message.thinking}\n\n${message.content}`, content: "" }
      : message,
  );
}

const hasSeveralCalls = ({ tool_calls: calls = [] }: PromptMessage): boolean => calls.length > 1;

const LEVELS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
/** The list of levels that a template accepts. */
const CHECKED = /(?:reasoning|thinking)_effort\s+not\s+in\s*[[(]([^\])]*)/;

/**
 * A thinking level in the template's words; undefined if `think` is not a level. If the template accepts only some
 * levels, the nearest one; if two are equally near, the higher one.
 */
export function effortOf(think: Think | undefined, source: string): string | undefined {
  if (typeof think !== "string") return undefined;
  const listed = CHECKED.exec(source)?.[1]
    ?.match(/\w+/g)
    ?.filter((level) => level !== "none" && LEVELS.includes(level));
  if (listed?.length) {
    const distance = (level: string): number => LEVELS.indexOf(level) - LEVELS.indexOf(think);
    return listed.reduce((best, level) => {
      const [found, now] = [distance(level), distance(best)];
      return Math.abs(found) < Math.abs(now) || (found === -now && found > 0) ? level : best;
    });
  }
  const names = (level: string): boolean => source.includes(`'${level}'`) || source.includes(`"${level}"`);
  return think === "high" && !names("high") && names("xhigh") ? "xhigh" : think;
}
