/**
 * Conversations put into the shape that a Jinja chat template can take: a system text where it has no place for one,
 * several calls in one message where it allows one, thoughts beside a text where it has a place for one of them, a
 * level of thinking under the name that it knows.
 */
import type { PromptMessage, Think } from "./messages.ts";

/**
 * Whether a template prints a system message. One that refuses it, or leaves it out, does not; one that renders neither
 * with nor without it says nothing about it.
 * @param render throws where the template refuses these messages
 */
export function takesSystem(render: (messages: readonly PromptMessage[]) => string): boolean {
  const user = { role: "user", content: "question" };
  const tried = (messages: readonly PromptMessage[]): string | undefined => {
    try {
      return render(messages);
    } catch {
      return undefined; // the template refuses, or fails on what a trial does not have
    }
  };
  const text = tried([{ role: "system", content: SYSTEM_TRIAL }, user]);
  return text === undefined ? tried([user]) === undefined : text.includes(SYSTEM_TRIAL);
}

/**
 * Whether a template prints the content of messages only where it is a list of parts.
 * @param render throws where the template refuses these messages
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

/** Each system message in front of what comes next, as that message's beginning; alone, as the user's. */
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

/** One message per call, each followed by its result. The same messages where none has several calls. */
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

/** Thoughts and text in front of calls as one, where a template has a place for only one of them. */
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
 * A level of thinking as a template names it; undefined if `think` is not a level. If the template accepts only some
 * levels, this is the nearest one, and the higher of two.
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
