/**
 * Adapts conversations to a Jinja chat template: folds a system text if it has no place for one, splits messages with
 * several calls, joins thoughts and text if it has a place for only one, and names a thinking level in the template's
 * words.
 */
import type { PromptMessage, Think } from "./messages.ts";

/**
 * Returns whether a template prints a system message: false if it refuses or omits it, undefined if it renders neither
 * with nor without it.
 * @param render throws if the template refuses these messages
 */
export function takesSystem(render: (messages: readonly PromptMessage[]) => string): boolean {
  const user = { role: "user", content: "question" };
  const tried = (messages: readonly PromptMessage[]): string | undefined => {
    try {
      return render(messages);
    } catch {
      return undefined; // the template refuses, or needs data that a trial does not have
    }
  };
  const text = tried([{ role: "system", content: SYSTEM_TRIAL }, user]);
  return text === undefined ? tried([user]) === undefined : text.includes(SYSTEM_TRIAL);
}

/**
 * Returns whether a template prints content only as a list of parts.
 * @param render throws if the template refuses these messages
 */
export function needsParts(render: (messages: readonly PromptMessage[], asParts: boolean) => string): boolean {
  const shows = (asParts: boolean): boolean => {
    try {
      return render([{ role: "user", content: USER_TRIAL }], asParts).includes(USER_TRIAL);
    } catch {
      return false;
    }
  };
  return !shows(false) && shows(true);
}

const USER_TRIAL = "user-message-of-a-trial";
const SYSTEM_TRIAL = "system-message-of-a-trial";

/** Puts each system message at the beginning of the next message; alone, it becomes the user's. */
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

/** Joins thoughts and text before calls, for a template that has a place for only one of them. */
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
const CHECKED = /reasoning_effort\s+not\s+in\s*[[(]([^\])]*)/;

/**
 * A thinking level in the template's words; undefined if `think` is not a level. If the template accepts only some
 * levels, the nearest one; the higher one of two.
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
