/**
 * Solar Open: an answer is a sequence of messages, each with a tag that says what it is.
 *
 *     <|think|>The user wants …<|end|>
 *     <|begin|>assistant<|tool_calls|><|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>weather<|tool_call:args|>{"city":
 *     "Oslo"}<|tool_call:end|><|calls|>
 *     <|begin|>assistant<|content|>It is cold.<|end|>
 */
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { makeCall } from "./json-calls.ts";
import { makeMessagesParser } from "./messages.ts";
import { splitOutsideStrings } from "./scan.ts";

const THINK = "<|think|>";
const CONTENT = "<|content|>";
const CALLS = "<|tool_calls|>";
const START = "<|begin|>";
const ENDS = ["<|end|>", "<|calls|>"];
const CALL = "<|tool_call:begin|>";
const NAME = "<|tool_call:name|>";
const ARGUMENTS = "<|tool_call:args|>";
const CALL_END = "<|tool_call:end|>";

export const solar: ToolFormat = {
  isIn: (source) => source.includes(CALL),
  markup: [...ENDS, START, THINK, CONTENT, CALLS, CALL, NAME, ARGUMENTS, CALL_END],
  forced: { ...plainForced, open: CONTENT },
  grammar: (w) => {
    const one = w.perTool((tool) => {
      const head = `${w.text(CALL)} [a-zA-Z0-9]{1,32} ${w.text(`${NAME}${tool.name}${ARGUMENTS}`)}`;
      return `${head} ${w.ws} ${w.args(tool)} ${w.ws} ${w.text(CALL_END)}`;
    });
    return [{ opens: [CALLS], rest: `${w.ws} ${w.many(one, w.ws)}`, end: "<|calls|>" }];
  },
  makeParser: (_, promptEnd) =>
    makeMessagesParser({
      starts: [START],
      firsts: [],
      bodies: [THINK, CONTENT, CALLS],
      ends: ENDS,
      kindOf: (_, tag) => (tag === CALLS ? { call: "" } : tag === THINK ? "thinking" : "text"),
      promptEnd,
      callsIn,
    }),
  marks: { thinking: { open: THINK, close: "<|end|>" }, next: `${START}assistant`, answer: CONTENT },
};

/** Empty if any part is not a call. */
function callsIn(body: string): CallEvent[] {
  const [before = "", ...parts] = splitOutsideStrings(body, CALL);
  const calls = parts.map((part) => {
    const found = /^[^]*?<\|tool_call:name\|>([^]*?)<\|tool_call:args\|>([^]*?)(?:<\|tool_call:end\|>\s*)?$/.exec(part);
    return found ? makeCall(found[1]!.trim(), found[2]) : undefined; // the groups always match
  });
  return before.trim() === "" && calls.every((call) => call !== undefined) ? calls : [];
}
