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
import { exactCalls } from "./exact-calls.ts";
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { callsInJson, makeCall } from "./json-calls.ts";
import { rawArguments } from "./raw-arguments.ts";
import { scanToTag } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";
import { typedValue } from "./typed-values.ts";

const OPENS = ["<tool_call>"];
const CLOSES = ["</tool_call>"];
const PATTERNS = {
  open: /\s*([^\s<]+)\s*/y,
  argument: /<arg_key>([^<]*)<\/arg_key>\s*<arg_value>([^]*?)<\/arg_value>\s*/y,
};

export const glm: ToolFormat = {
  isIn: (source) => source.includes("<arg_key>"),
  markup: [...OPENS, ...CLOSES, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"],
  forced: { ...plainForced, open: "<tool_call>" },
  grammar: (w) => {
    const one = w.perTool((tool) => `${w.text(tool.name)} ${w.ws} ${pairs(w, tool)}`);
    return [{ opens: OPENS, rest: `${w.ws} ${one} ${w.text("</tool_call>")}` }];
  },
  makeParser: (tools) =>
    makeTaggedParser({
      opens: OPENS,
      closes: CLOSES,
      makeScan: () => scanToTag({ opens: OPENS, closes: CLOSES, raw: { from: "<arg_value>", to: "</arg_value>" } }),
      callsIn: (body) => (body.trimStart().startsWith("{") ? callsInJson(body) : callsInPairs(body, tools)),
    }),
};

/** @param sign what stands in the names of tags, behind them */
export function pairs(w: CallWriter, tool: CallableTool, sign = ""): string {
  const tag = (name: string): string => `<${name}${sign}>`;
  const open = (key: string): string => `${tag("arg_key")}${key}${tag("/arg_key")}\n${tag("arg_value")}`;
  return rawArguments(w, tool, { open, close: tag("/arg_value") });
}

/** The call in a text without its outer tags; empty if the text is not a call. */
export function callsInPairs(body: string, tools: readonly Tool[]): CallEvent[] {
  const exact = exactCalls(body, PATTERNS, (name, [, key, value]) => {
    const argument = key!.trim(); // the groups always match
    return [argument, typedValue(tools, { name, argument }, value!)];
  });
  if (exact?.length === 1) return exact;
  const [head = "", ...pairs] = body.split("<arg_key>");
  const name = head.trim();
  const args = pairs.map((pair) => argumentIn(pair, name, tools));
  if (!/^\S+$/.test(name) || args.includes(undefined)) return [];
  const call = makeCall(name, Object.fromEntries(args as [string, unknown][])); // just checked
  return call ? [call] : [];
}

function argumentIn(pair: string, name: string, tools: readonly Tool[]): [string, unknown] | undefined {
  const found = /^([^]*?)<\/arg_key>\s*<arg_value>([^]*?)(?:<\/arg_value>\s*)?$/.exec(pair);
  const argument = found?.[1]?.trim();
  if (!found || !argument) return undefined;
  return [argument, typedValue(tools, { name, argument }, found[2] ?? "")];
}
