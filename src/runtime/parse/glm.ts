/**
 * Calls as GLM 4.5 and later write them: the name, then pairs of tags.
 *
 *     <tool_call>get_weather
 *     <arg_key>city</arg_key>
 *     <arg_value>Oslo</arg_value>
 *     </tool_call>
 */
import type { Tool } from "../requests/runtime.ts";
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { callsInJson, makeCall } from "./json-calls.ts";
import { scanToTag } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";
import { typedValue } from "./typed-values.ts";

const OPENS = ["<tool_call>"];
const CLOSES = ["</tool_call>"];

export const glm: ToolFormat = {
  isIn: (source) => source.includes("<arg_key>"),
  markup: [...OPENS, ...CLOSES, "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"],
  forced: { ...plainForced, open: "<tool_call>" },
  makeParser: (tools) =>
    makeTaggedParser({
      opens: OPENS,
      closes: CLOSES,
      makeScan: () => scanToTag({ opens: OPENS, closes: CLOSES }),
      callsIn: (body) => (body.trimStart().startsWith("{") ? callsInJson(body) : callsInPairs(body, tools)),
    }),
};

/** The call in a text without its outer tags; empty if the text is not a call. */
export function callsInPairs(body: string, tools: readonly Tool[]): CallEvent[] {
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
