/**
 * Calls as Hunyuan 3 writes them: GLM's pairs of tags with a common suffix, in one block.
 *
 *     <tool_calls:opensource>
 *     <tool_call:opensource>get_weather<tool_sep:opensource>
 *     <arg_key:opensource>city</arg_key:opensource>
 *     <arg_value:opensource>Oslo</arg_value:opensource>
 *     </tool_call:opensource>
 *     </tool_calls:opensource>
 */
import type { Tool } from "../requests/runtime.ts";
import { exactCalls, isInsideJson } from "./exact-calls.ts";
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { callsInPairs, exactPairs, pairs } from "./glm.ts";
import { callsInJson } from "./json-calls.ts";
import { scanToTag, splitAt } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";

const SIGN = ":opensource";
const END = `${SIGN}>`;
const OPENS = [`<tool_calls${END}`];
const CLOSES = [`</tool_calls${END}`];
const CALL = `<tool_call${END}`;
const CALL_END = `</tool_call${END}`;
const RAW = { from: `<arg_value${END}`, to: `</arg_value${END}` };

export const hunyuan: ToolFormat = {
  isIn: (source) => source.includes(":opensource"), // templates append it to the names
  markup: [...OPENS, ...CLOSES, CALL, CALL_END, `<tool_sep${END}`],
  forced: { ...plainForced, open: `${OPENS[0]}\n` },
  grammar: (w) => {
    const one = w.perTool(
      (tool) => `${w.text(`${CALL}${tool.name}<tool_sep${END}`)} ${w.ws} ${pairs(w, tool, SIGN)} ${w.text(CALL_END)}`,
    );
    return [{ opens: OPENS, rest: `${w.ws} ${w.many(one, w.ws)} ${w.ws} ${w.text(CLOSES[0]!)}` }]; // there is one
  },
  makeParser: (tools) =>
    makeTaggedParser({
      opens: OPENS,
      closes: CLOSES,
      makeScan: () => {
        const exact = exactPairs(tools, SIGN);
        return scanToTag({ opens: OPENS, closes: CLOSES, raw: RAW, isInside: (body) => isInsideJson(body, exact) });
      },
      callsIn: (body) => (body.trimStart().startsWith("{") ? callsInJson(body) : callsIn(body, tools)),
    }),
};

/** Empty if any part is not a call. */
function callsIn(body: string, tools: readonly Tool[]): CallEvent[] {
  const exact = exactCalls(body, exactPairs(tools, SIGN));
  if (exact) return exact;
  const [before = "", ...parts] = splitAt(body, () => scanToTag({ opens: [], closes: [CALL], raw: RAW }));
  const calls = parts.map((part) =>
    callsInPairs(
      part
        .replace(/^\s*([^\s<]+)<tool_sep:opensource>/, "$1")
        .replace(/<\/tool_call:opensource>\s*$/, "")
        .replaceAll(/(<\/?arg_\w+):opensource>/g, "$1>"),
      tools,
    ),
  );
  return before.trim() === "" && calls.every((each) => each.length === 1) ? calls.flat() : [];
}
