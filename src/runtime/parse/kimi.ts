/**
 * Calls as Kimi K2 writes them: each has an id that contains the tool's name and the call's number.
 *
 *     <|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{"city": "Oslo"}
 *     <|tool_call_end|><|tool_calls_section_end|>
 */
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { callsInJson, makeCall, splitOnce } from "./json-calls.ts";
import { scanToTagOutsideStrings, splitOutsideStrings } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";

const ALL_OPEN = "<|tool_calls_section_begin|>";
const ALL_CLOSE = "<|tool_calls_section_end|>";
const OPEN = "<|tool_call_begin|>";
const CLOSE = "<|tool_call_end|>";
const ARGUMENTS = "<|tool_call_argument_begin|>";

export const kimi: ToolFormat = {
  isIn: (source) => source.includes(OPEN),
  markup: [ALL_OPEN, ALL_CLOSE, OPEN, CLOSE, ARGUMENTS],
  forced: { ...plainForced, open: ALL_OPEN },
  grammar: (w) => {
    const one = w.perTool((tool) => {
      const id = `${w.text(`functions.${tool.name}:`)} [0-9]{1,3}`;
      return `${w.text(OPEN)} ${w.ws} ${id} ${w.ws} ${w.text(ARGUMENTS)} ${w.ws} ${w.args(tool)} ${w.ws} ${w.text(CLOSE)}`;
    });
    return [{ opens: [ALL_OPEN], rest: `${w.ws} ${w.many(one, w.ws)} ${w.ws} ${w.text(ALL_CLOSE)}` }];
  },
  makeParser: () =>
    makeTaggedParser({
      opens: [ALL_OPEN],
      closes: [ALL_CLOSE],
      makeScan: () => scanToTagOutsideStrings({ opens: [ALL_OPEN], closes: [ALL_CLOSE] }),
      callsIn,
    }),
};

function callsIn(body: string): CallEvent[] {
  if (body.trimStart().startsWith("{")) return callsInJson(body);
  const [before = "", ...parts] = splitOutsideStrings(body, OPEN);
  const calls = parts.map((part) => {
    const [id = "", args] = splitOnce(part, ARGUMENTS);
    const name = id
      .trim()
      .replace(/^functions\./, "")
      .replace(/:\d+$/, "");
    return args === undefined ? undefined : makeCall(name, args.replace(/<\|tool_call_end\|>\s*$/, ""));
  });
  return before.trim() === "" && calls.every((call) => call !== undefined) ? calls : [];
}
