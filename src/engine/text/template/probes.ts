/** Finds out what a template can render, by rendering messages with a known text. */
import type { PromptMessage } from "./messages.ts";

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
      return undefined; // the template refuses, or needs data that a probe does not have
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

/**
 * Returns whether a template prints the calls of a message only if its content is null.
 * @param render throws if the template refuses these messages
 */
export function callsWithoutText(render: (messages: readonly PromptMessage[], isNull: boolean) => string): boolean {
  const shows = (isNull: boolean, args: Record<string, unknown> = {}): boolean => {
    const call = { function: { name: CALL_TRIAL, arguments: args } };
    const messages: PromptMessage[] = [
      { role: "user", content: USER_TRIAL },
      { role: "assistant", content: "", tool_calls: [call] },
      { role: "tool", content: USER_TRIAL, tool_name: CALL_TRIAL },
    ];
    try {
      return render(messages, isNull).includes(CALL_TRIAL);
    } catch {
      return false;
    }
  };
  const texts = "{}" as unknown as Record<string, unknown>; // some templates want arguments as a text
  return !shows(false) && !shows(false, texts) && (shows(true) || shows(true, texts));
}

const CALL_TRIAL = "function-of-a-trial";
const USER_TRIAL = "user-message-of-a-trial";
const SYSTEM_TRIAL = "system-message-of-a-trial";
