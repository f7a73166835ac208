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
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { callsInJson, makeCall } from "./json-calls.ts";
import { rawArguments } from "./raw-arguments.ts";
import { scanToTag, sticky, type Scan } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";
import { typedValue } from "./typed-values.ts";

const OPEN = "<tool_call>";
const FUNCTION = "<function=";
const END = "</function>";
const CLOSES = ["</tool_call>", END];
const PARAMETER = "<parameter=";
const PARAMETER_END = "</parameter>";
const RAW = { from: PARAMETER, to: PARAMETER_END };

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
        open === OPEN ? scanOuter() : scanToTag({ opens: [OPEN, FUNCTION], closes: [END], raw: RAW }),
      callsIn: (body, open) => {
        const text = open === OPEN ? body.trim() : FUNCTION + body;
        return text.startsWith("{") ? callsInJson(text) : callsInTags(text, tools);
      },
    }),
};

/** An outer tag ends with its own closing tag; a function inside it does not end it. */
const scanOuter = (): Scan => scanToTag({ opens: [OPEN], closes: ["</tool_call>"], raw: RAW });

/** One call or several; empty if one of them has no name. */
function callsInTags(text: string, tools: readonly Tool[]): CallEvent[] {
  const exact = exactCalls(text, tools);
  if (exact) return exact;
  const functions = text.split(FUNCTION).slice(1);
  const calls = functions.map((each) => callIn(each, tools));
  const before = text.slice(0, Math.max(0, text.indexOf(FUNCTION))).trim();
  return before === "" && calls.every((call) => call !== undefined) ? calls : [];
}

/** Calls that are written to the letter: a value may hold any tag but its own end. */
function exactCalls(text: string, tools: readonly Tool[]): CallEvent[] | undefined {
  const take = sticky(text);
  const calls: CallEvent[] = [];
  while (take(/\s*<function=([^>"'\s]+)>\s*/y)) {
    const name = take.last[1]!; // the groups of a match that they are part of
    const args: [string, unknown][] = [];
    while (take(/<parameter=([^>"']+)>(?:\r?\n)?([^]*?)(?:\r?\n)?<\/parameter>\s*/y)) {
      const argument = take.last[1]!.trim();
      args.push([argument, typedValue(tools, { name, argument }, take.last[2]!)]);
    }
    if (!take(/<\/function>\s*/y)) return undefined;
    const call = makeCall(name, Object.fromEntries(args));
    if (call) calls.push(call);
  }
  return take.isAtEnd() && calls.length > 0 ? calls : undefined;
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
