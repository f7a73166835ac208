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
import { makeExactParser } from "./exact-calls.ts";
import { plainForced, type ToolFormat } from "./format.ts";
import { exactArguments, argumentPairs } from "./glm.ts";

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
      (tool) =>
        `${w.text(`${CALL}${tool.name}<tool_sep${END}`)} ${w.ws} ${argumentPairs(w, tool, SIGN)} ${w.text(CALL_END)}`,
    );
    return [{ opens: OPENS, rest: `${w.ws} ${w.many(one, w.ws)} ${w.ws} ${w.text(CLOSES[0]!)}` }]; // there is one
  },
  makeParser: (tools) =>
    makeExactParser({ opens: OPENS, closes: CLOSES, raw: RAW, exact: exactArguments(tools, SIGN) }),
};
