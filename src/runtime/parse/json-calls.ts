/** Calls in JSON: `{"name": …, "arguments": {…}}`, one or a list, under the keys that formats use. */
import { isObject } from "../../base/index.ts";
import type { CallEvent } from "./format.ts";
import { scanBalanced } from "./scan.ts";

/** The calls in a text: one, a list, or several in sequence; empty if any part is not a call. */
export function callsInJson(text: string): CallEvent[] {
  const parsed = parseJson(text) ?? valuesIn(text);
  const calls = (Array.isArray(parsed) ? parsed : [parsed]).map(callOf);
  return calls.every((call) => call !== undefined) ? calls : [];
}

/** Objects and lists in sequence. */
function valuesIn(text: string): unknown[] {
  const values: unknown[] = [];
  for (let rest = text; rest.trim() !== "";) {
    const end = scanBalanced()(rest)?.at ?? rest.length;
    values.push(parseJson(rest.slice(0, end)));
    rest = rest.slice(end);
  }
  return values;
}

/** The calls in a list of objects whose only key is the tool's name; empty if any object differs. */
export function callsByName(text: string): CallEvent[] {
  const parsed = parseJson(text);
  const calls = (Array.isArray(parsed) ? parsed : [parsed]).map((value) => {
    const [[name, args] = [], ...more] = isObject(value) ? Object.entries(value) : [];
    return more.length === 0 ? makeCall(name, args) : undefined;
  });
  return calls.every((call) => call !== undefined) ? calls : [];
}

/** A call with arguments from an object or from JSON text; undefined for other arguments. */
export function makeCall(name: unknown, args: unknown): CallEvent | undefined {
  if (typeof name !== "string" || name === "") return undefined;
  const given = typeof args === "string" ? parseJson(args) : args;
  return isObject(given) ? { kind: "toolCall", name, arguments: given } : undefined;
}

function callOf(value: unknown): CallEvent | undefined {
  if (!isObject(value)) return undefined;
  const call = isObject(value["function"]) ? value["function"] : value;
  return makeCall(call["name"] ?? call["tool_name"], call["arguments"] ?? call["parameters"] ?? {});
}

/** Undefined for invalid JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The parts before and after the first separator; the second is undefined if there is no separator. */
export function splitOnce(text: string, separator: string): [string, string?] {
  const at = text.indexOf(separator);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + separator.length)];
}
