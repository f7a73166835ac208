/**
 * Matches tool results with calls. Clients name the tool or the id of the call; templates need one or the other, and
 * Mistral's refuse requests whose ids are not nine letters and digits.
 */
import type { PromptMessage, PromptToolCall } from "./messages.ts";

const SHORT_ID_LENGTH = 9;

/** Adds the tool's name to results that have the id of their call. */
export function nameResults(messages: readonly PromptMessage[]): readonly PromptMessage[] {
  const names = new Map<string, string>();
  return messages.map((message) => {
    for (const { id, function: target } of message.tool_calls ?? []) if (id) names.set(id, target.name);
    const name = message.tool_name ? undefined : names.get(message.tool_call_id ?? "");
    return name === undefined ? message : { ...message, tool_name: name };
  });
}

/** Returns whether a Jinja template accepts only short ids. */
export const wantsShortIds = (source: string): boolean =>
  /\bid\s*\|\s*length\s*!=\s*9\b|call_id\s*\|\s*length\s*!=\s*9\b/.test(source);

/** Gives every call and result an id of nine letters and digits; valid ids stay unchanged. */
export function withShortIds(messages: readonly PromptMessage[]): readonly PromptMessage[] {
  const short = new Map<string, string>(); // by the client's id
  const taken = new Set(idsIn(messages).filter(isShort));
  const shorten = (id: string | undefined): string => {
    const made = (id && (short.get(id) ?? (isShort(id) ? id : undefined))) || firstFree(taken);
    taken.add(made);
    if (id) short.set(id, made);
    return made;
  };
  let unanswered: { id: string; name: string }[] = [];
  return messages.map((message) => {
    if (message.tool_calls?.length) {
      const calls = message.tool_calls.map((call): PromptToolCall & { id: string } => ({
        ...call,
        id: shorten(call.id),
      }));
      unanswered = calls.map((call) => ({ id: call.id, name: call.function.name }));
      return { ...message, tool_calls: calls };
    }
    if (message.role !== "tool") return message;
    const id = message.tool_call_id ? shorten(message.tool_call_id) : idFor(message.tool_name, unanswered);
    unanswered = unanswered.filter((call) => call.id !== id);
    return { ...message, tool_call_id: id ?? shorten(undefined) };
  });
}

const isShort = (id: string): boolean => /^[A-Za-z0-9]{9}$/.test(id);

const idsIn = (messages: readonly PromptMessage[]): string[] =>
  messages
    .flatMap(({ tool_calls = [], tool_call_id }) => [tool_call_id, ...tool_calls.map(({ id }) => id)])
    .filter((id) => id !== undefined);

/** The first unanswered call of that name, else the first unanswered call. */
const idFor = (name: string | undefined, unanswered: readonly { id: string; name: string }[]): string | undefined =>
  (unanswered.find((call) => call.name === name) ?? unanswered[0])?.id;

function firstFree(taken: ReadonlySet<string>): string {
  for (let n = taken.size; ; n++) {
    const id = String(n).padStart(SHORT_ID_LENGTH, "0");
    if (!taken.has(id)) return id;
  }
}
