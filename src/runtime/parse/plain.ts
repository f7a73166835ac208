/**
 * Calls of a template with an unknown format: JSON with the name of a tool, after the text that the template puts
 * before a call, or as the whole answer. Only offered tools are called; other JSON is text.
 *
 * Accepted, in this order: an object with a `name` and `arguments` or `parameters`; an object under the name of a tool;
 * such an object inside another; the arguments themselves after the name of a tool in plain text.
 */
import { isObject } from "../../base/index.ts";
import type { Tool } from "../requests/runtime.ts";
import { plainForced, type CallEvent, type TextParser, type ToolFormat } from "./format.ts";
import { namedCalls } from "./named-calls.ts";
import { makeCall, parseJson } from "./json-calls.ts";
import { scanBalanced } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";

/** Maximum nesting that is searched for a call. */
const DEPTH_MAX = 16;

/** @param tag the text that the template puts before a call; `{` or `[`: none */
export const makePlainParser = (tools: readonly Tool[], tag: string): TextParser => {
  const isBracket = tag === "{" || tag === "[";
  const names = tools.map((tool) => tool.function.name).sort((a, b) => b.length - a.length);
  return makeTaggedParser({
    opens: isBracket ? [] : [tag.replace(/\s*\[$/, "")],
    closes: [],
    makeScan: () => scanBalanced(),
    callsIn: (body) => callsIn(body, names),
    ...(isBracket ? { openAtStart: tag } : {}),
  });
};

export const plain: ToolFormat = {
  isIn: () => true,
  markup: [],
  forced: plainForced,
  grammar: (w) => namedCalls(w, ["arguments", "parameters"]),
  makeParser: (tools) => makePlainParser(tools, "{"),
};

function callsIn(body: string, names: readonly string[]): CallEvent[] {
  const start = /[[{]/.exec(body)?.index ?? body.length;
  const value = parseJson(body.slice(start));
  const found = callsOf(value, names, 0);
  if (found.length > 0 || !isObject(value)) return found;
  const name = names.find((each) => body.slice(0, start).includes(each));
  const call = name === undefined ? undefined : makeCall(name, value);
  return call ? [call] : [];
}

function callsOf(value: unknown, names: readonly string[], depth: number): CallEvent[] {
  if (depth > DEPTH_MAX || typeof value !== "object" || value === null) return [];
  if (isObject(value)) {
    const { name } = value;
    if (typeof name === "string" && names.includes(name)) {
      const call = makeCall(name, value["arguments"] ?? value["parameters"]);
      if (call) return [call];
    }
    const key = Object.keys(value).find((each) => names.includes(each) && isObject(value[each]));
    const call = key === undefined ? undefined : makeCall(key, value[key]);
    if (call) return [call];
  }
  return Object.values(value).flatMap((each) => callsOf(each, names, depth + 1));
}
