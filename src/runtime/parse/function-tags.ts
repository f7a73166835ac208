/**
 * Calls of Qwen3-Coder, Nemotron 3 and others: a tag for the function and one for each argument. An argument is plain
 * text unless the tool's schema says otherwise.
 *
 *     <tool_call>
 *     <function=get_weather>
 *     <parameter=city>
 *     Oslo
 *     </parameter>
 *     </function>
 *     </tool_call>
 *
 * The outer tags may be missing. Functionary and Llama's custom tools put one JSON object in place of the parameters.
 */
import type { Tool } from "../requests/runtime.ts";
import { exactCalls, isInsideJson, type ExactCalls } from "./exact-calls.ts";
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { callsInJson, makeCall } from "./json-calls.ts";
import { rawArguments } from "./raw-arguments.ts";
import { scanToTag } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";
import { typedValue } from "./typed-values.ts";

const OPEN = "<tool_call>";
const FUNCTION = "<function=";
const END = "</function>";
const CLOSES = ["</tool_call>", END];
const PARAMETER = "<parameter=";
const PARAMETER_END = "</parameter>";
const PATTERNS = {
  open: /\s*<function=([^>"'\s]+)>\s*/y,
  argument: /<parameter=([^>"']+)>(?:\r?\n)?/y,
  end: () => PARAMETER_END,
  close: /<\/function>\s*/y,
};
const RAW = { from: PARAMETER, to: PARAMETER_END };
/** An outer tag ends with its own closing tag; a function inside it does not end it. */
const OUTER = { opens: [OPEN], closes: ["</tool_call>"], raw: RAW };
const INNER = { opens: [OPEN, FUNCTION], closes: [END], raw: RAW };

export const functionTags: ToolFormat = {
  isIn: (source) => source.includes(FUNCTION),
  markup: [OPEN, "</tool_call>"],
  forced: { ...plainForced, open: `${OPEN}\n` },
  grammar: (w) => {
    const marks = { open: (key: string) => `${PARAMETER}${key}>\n`, close: `\n${PARAMETER_END}`, stop: PARAMETER_END };
    const inner = w.perTool(
      (tool) => `${w.text(`${tool.name}>`)} ${w.ws} ${rawArguments(w, tool, marks)} ${w.text(END)}`,
    );
    const one = `${w.text(FUNCTION)} ${inner}`;
    return [
      { opens: [OPEN], rest: `${w.ws} ${w.many(one, w.ws)} ${w.ws} ${w.text("</tool_call>")}` },
      { opens: [FUNCTION], rest: inner },
    ];
  },
  makeParser: (tools) =>
    makeTaggedParser({
      opens: [OPEN, FUNCTION],
      closes: CLOSES,
      makeScan: (open) =>
        scanToTag(
          open === OPEN
            ? { ...OUTER, isInside: (body) => isInsideJson(body, exactIn(tools)) }
            : { ...INNER, isInside: (body) => isInsideJson(FUNCTION + body, exactIn(tools)) },
        ),
      callsIn: (body, open) => {
        const text = open === OPEN ? body.trim() : FUNCTION + body + END;
        return text.startsWith("{") ? callsInJson(text) : callsInTags(text, tools);
      },
    }),
};

const exactIn = (tools: readonly Tool[]): ExactCalls => ({
  patterns: PATTERNS,
  tools,
  valueOf: (at, text) => typedValue(tools, at, text.replace(/\r?\n$/, "")),
});

/** One call or several; empty if one of them has no name. */
function callsInTags(text: string, tools: readonly Tool[]): CallEvent[] {
  const exact = exactCalls(text, exactIn(tools));
  if (exact) return exact;
  const functions = text.split(FUNCTION).slice(1);
  const calls = functions.map((each) => callIn(each, tools));
  const before = text.slice(0, Math.max(0, text.indexOf(FUNCTION))).trim();
  return before === "" && calls.every((call) => call !== undefined) ? calls : [];
}

function callIn(text: string, tools: readonly Tool[]): CallEvent | undefined {
  const end = text.indexOf(">");
  if (end < 0) return undefined;
  const name = text
    .slice(0, end)
    .trim()
    .replaceAll(/^["']|["']$/g, "");
  const body = text.slice(end + 1).replace(/<\/function>\s*$/, "");
  if (body.trimStart().startsWith("{")) return makeCall(name, body);
  const parameters = body.split("<parameter=");
  if (parameters[0]!.trim() !== "") return undefined; // split returns at least one part
  const args = parameters.slice(1).map((part) => argumentIn(part, name, tools));
  return args.every((arg) => arg !== undefined) ? makeCall(name, Object.fromEntries(args)) : undefined;
}

/** `name>\nvalue\n</parameter>`: the line breaks beside the tags are not part of the value. */
function argumentIn(text: string, name: string, tools: readonly Tool[]): [string, unknown] | undefined {
  const end = text.indexOf(">");
  if (end < 0) return undefined;
  const argument = text
    .slice(0, end)
    .trim()
    .replaceAll(/^["']|["']$/g, "");
  const close = text.lastIndexOf("</parameter>");
  const value = text
    .slice(end + 1, close < 0 ? undefined : close)
    .replace(/^\r?\n/, "")
    .replace(/\r?\n$/, "");
  return [argument, typedValue(tools, { name, argument }, value)];
}
