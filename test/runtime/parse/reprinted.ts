/** A model's turn with calls as a template prints it, parsed again. */
import { messageOf } from "../../../src/base/index.ts";
import { renderChat, type PromptTemplate } from "../../../src/engine/text/template/prompt.ts";
import type { CallEvent } from "../../../src/runtime/parse/format.ts";
import { toolFormats, type ToolFormatName } from "../../../src/runtime/parse/index.ts";
import type { Message, Tool } from "../../../src/runtime/requests/runtime.ts";
import { MARKS } from "./random-calls.ts";
import { parseWith } from "./cut.ts";

const NOW = new Date(2026, 10, 21);
const QUESTION: Message = { role: "user", content: "What now?" };
const RESULT = "RESULT-7";

interface Turn {
  readonly tools: readonly Tool[];
  readonly calls: readonly CallEvent[];
}

/** Texts that end a turn and that the model does not write. */
const ENDS = /<\|eot_id\|>|<｜tool▁outputs▁begin｜>/;

/** Returns whether a text of a call has a mark of its format: most templates cannot print that without loss. */
export const hasMarks = (name: ToolFormatName, calls: readonly CallEvent[]): boolean =>
  [...MARKS, ...toolFormats[name].markup].some((mark) =>
    JSON.stringify(calls).includes(JSON.stringify(mark).slice(1, -1)),
  );

/** Names the difference once a template printed calls and the parser read them; undefined: they are the same. */
export function reprinted(name: ToolFormatName, template: PromptTemplate, turn: Turn): string | undefined {
  let turns: string[];
  try {
    turns = turnsOf(template, turn);
  } catch (error) {
    return `the template failed: ${messageOf(error)}`;
  }
  const isSame = (text: string): boolean => {
    const events = parseWith(toolFormats[name].makeParser(turn.tools), [text]);
    const read = events.filter((event) => event.kind === "toolCall");
    return Bun.deepEquals(read, turn.calls);
  };
  if (turns.some(isSame)) return undefined;
  return `the template printed ${JSON.stringify(turns.at(-1))} for ${JSON.stringify(turn.calls)}`;
}

/** The template's text of the model's turn, up to the results: after the prompt, and after the question. */
function turnsOf(template: PromptTemplate, { tools, calls }: Turn): string[] {
  const render = (...messages: Message[]): string =>
    renderChat(template, { messages, tools: [...tools], now: NOW, think: false });
  const ids = calls.map((_, i) => `call_ab12cd3${i % 10}`);
  const calling: Message = {
    role: "assistant",
    content: "",
    tool_calls: calls.map(({ name, arguments: args }, index) => ({
      id: ids[index]!,
      function: { index, name, arguments: args },
    })),
  };
  const results = calls.map(({ name }, i): Message => ({
    role: "tool",
    content: RESULT,
    tool_name: name,
    tool_call_id: ids[i]!,
  }));
  const whole = render(QUESTION, calling, ...results);
  const prompt = render(QUESTION);
  let same = 0;
  while (same < prompt.length && prompt[same] === whole[same]) same++;
  const end = whole.lastIndexOf(RESULT);
  const starts = [same, whole.lastIndexOf(QUESTION.content) + QUESTION.content.length];
  return starts.map((from) => whole.slice(from, end)).flatMap((turn) => [turn, turn.split(ENDS, 1)[0]!]); // a part
}
