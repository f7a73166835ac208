/**
 * Calls as GLM 4.5 and later write them: the name, then pairs of tags.
 *
 *     <tool_call>get_weather
 *     <arg_key>city</arg_key>
 *     <arg_value>Oslo</arg_value>
 *     </tool_call>
 */
import type { Tool } from "../requests/runtime.ts";
import type { CallableTool, CallWriter } from "./call-writer.ts";
import { makeExactParser, type ExactCalls } from "./exact-calls.ts";
import { plainForced, type ToolFormat } from "./format.ts";
import { rawArguments } from "./raw-arguments.ts";
import { typedValue } from "./typed-values.ts";

const OPENS = ["<tool_call>"];
const CLOSES = ["</tool_call>"];
const RAW = { from: "<arg_value>", to: "</arg_value>" };

export const glm: ToolFormat = {
  isIn: (source) => source.includes("<arg_key>"),
  markup: [...OPENS, ...CLOSES, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"],
  forced: { ...plainForced, open: "<tool_call>" },
  grammar: (w) => {
    const one = w.perTool((tool) => `${w.text(tool.name)} ${w.ws} ${argumentPairs(w, tool)}`);
    return [{ opens: OPENS, rest: `${w.ws} ${one} ${w.text("</tool_call>")}` }];
  },
  makeParser: (tools) => makeExactParser({ opens: OPENS, closes: CLOSES, raw: RAW, exact: exactArguments(tools) }),
};

/** @param sign suffix of each tag's name */
export function argumentPairs(w: CallWriter, tool: CallableTool, sign = ""): string {
  const tag = (name: string): string => `<${name}${sign}>`;
  const open = (key: string): string => `${tag("arg_key")}${key}${tag("/arg_key")}\n${tag("arg_value")}`;
  return rawArguments(w, tool, { open, close: tag("/arg_value") });
}

/** @param sign suffix of each tag's name */
export const exactArguments = (tools: readonly Tool[], sign = ""): ExactCalls => ({
  patterns: {
    open:
      sign === "" ? /^\s*([^\s<]+)\s*/y : new RegExp(`\\s*<tool_call${sign}>\\s*([^\\s<]+)<tool_sep${sign}>\\s*`, "y"),
    argument: new RegExp(`<arg_key${sign}>([^<]*)</arg_key${sign}>\\s*<arg_value${sign}>`, "y"),
    end: () => `</arg_value${sign}>`,
    ...(sign === "" ? {} : { close: new RegExp(`</tool_call${sign}>\\s*|$`, "y") }),
  },
  tools,
  valueOf: (at, text) => typedValue(tools, at, text),
});
