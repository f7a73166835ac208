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
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { callsInJson, makeCall } from "./json-calls.ts";
import { rawArguments } from "./raw-arguments.ts";
import { scanToTag, sticky } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";
import { typedValue } from "./typed-values.ts";

const OPENS = ["<tool_call>"];
const CLOSES = ["</tool_call>"];

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
  const exact = exactCall(body, tools);
  if (exact) return [exact];
  const [head = "", ...pairs] = body.split("<arg_key>");
  const name = head.trim();
  const args = pairs.map((pair) => argumentIn(pair, name, tools));
  if (!/^\S+$/.test(name) || args.includes(undefined)) return [];
  const call = makeCall(name, Object.fromEntries(args as [string, unknown][])); // just checked
  return call ? [call] : [];
}

/** A call that is written to the letter: a value may hold any tag but its own end. */
function exactCall(body: string, tools: readonly Tool[]): CallEvent | undefined {
  const take = sticky(body);
  if (!take(/\s*([^\s<]+)\s*/y)) return undefined;
  const name = take.last[1]!; // the groups of a match that they are part of
  const args: [string, unknown][] = [];
  while (take(/<arg_key>([^<]*)<\/arg_key>\s*<arg_value>([^]*?)<\/arg_value>\s*/y)) {
    const argument = take.last[1]!.trim();
    args.push([argument, typedValue(tools, { name, argument }, take.last[2]!)]);
  }
  return take.isAtEnd() ? makeCall(name, Object.fromEntries(args)) : undefined;
}

function argumentIn(pair: string, name: string, tools: readonly Tool[]): [string, unknown] | undefined {
  const found = /^([^]*?)<\/arg_key>\s*<arg_value>([^]*?)(?:<\/arg_value>\s*)?$/.exec(pair);
  const argument = found?.[1]?.trim();
  if (!found || !argument) return undefined;
  return [argument, typedValue(tools, { name, argument }, found[2] ?? "")];
}
