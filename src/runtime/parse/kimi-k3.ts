/**
 * Kimi K3: an answer is a sequence of elements, and so are its calls. The prompt has opened the first one.
 *
 *     The user wants …<|close|>think<|sep|><|open|>response<|sep|>Let me see.<|close|>response<|sep|>
 *     <|open|>tools<|sep|><|open|>call tool="get_weather" index="1"<|sep|>
 *     <|open|>argument key="city" type="string"<|sep|>Oslo<|close|>argument<|sep|>
 *     <|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>
 */
import type { Tool } from "../requests/runtime.ts";
import type { CallableTool, CallWriter } from "./call-writer.ts";
import { exactCalls, isInsideJson, type ExactCalls } from "./exact-calls.ts";
import { plainForced, type ToolFormat } from "./format.ts";
import { makeMessagesParser } from "./messages.ts";
import { rawArguments } from "./raw-arguments.ts";
import { scanToTag } from "./scan.ts";
import { takesAnyText, typedValue } from "./typed-values.ts";

const OPEN = "<|open|>";
const CLOSE = "<|close|>";
const SEPARATOR = "<|sep|>";
const opening = (tag: string): string => `${OPEN}${tag}${SEPARATOR}`;
const closing = (tag: string): string => `${CLOSE}${tag}${SEPARATOR}`;

const CALL_END = closing("call");
const ARGUMENT_END = closing("argument");
const JSON_END = closing("json");

/** The types that an argument may state. */
const TYPES = ["string", "number", "boolean", "null", "object", "array"];

export const kimiK3: ToolFormat = {
  isIn: (source) => source.includes(OPEN) && source.includes(CLOSE) && source.includes(SEPARATOR),
  markup: [OPEN, CLOSE, SEPARATOR],
  forced: { ...plainForced, open: opening("response") },
  grammar: (w) => {
    const one = w.perTool(
      (tool) =>
        `${w.text(`${OPEN}call tool="${escaped(tool.name)}" index="`)} [1-9] [0-9]? ${w.text(`"${SEPARATOR}`)} ` +
        `${w.ws} ${callArguments(w, tool)} ${w.text(CALL_END)}`,
    );
    return [{ opens: [opening("tools")], rest: `${w.ws} ${w.many(one, w.ws)} ${w.ws} ${w.text(closing("tools"))}` }];
  },
  makeParser: (tools, promptEnd) => {
    const exact = exactElements(tools);
    const whole = (header: string, body: string): string => header + SEPARATOR + body;
    return makeMessagesParser({
      starts: [OPEN],
      firsts: [],
      bodies: [SEPARATOR],
      ends: ["think", "response", "call", "tools", "message"].map(closing),
      kindOf,
      callsIn: (body, header) => exactCalls(whole(header, body), exact) ?? [],
      closings: [ARGUMENT_END],
      makeScan: (_, header) =>
        scanToTag({
          opens: [`${OPEN}call `, closing("tools"), closing("message")],
          closes: [CALL_END],
          raw: { from: `${OPEN}argument `, to: ARGUMENT_END },
          isInside: (body) => isInsideJson(whole(header, body), exact),
        }),
      promptEnd,
    });
  },
  marks: {
    thinking: { open: opening("think"), close: closing("think") },
    next: "",
    answer: opening("response"),
  },
};

function kindOf(header: string, separator: string) {
  const tag = /^\s*<\|open\|>(\w*)/.exec(header)?.[1];
  if (tag === "think") return "thinking";
  if (tag === "message" || tag === "tools") return "outer";
  if (tag === "call") return { call: header.trim() };
  return tag === undefined || tag === "response" || separator === "" ? "text" : undefined;
}

/** The arguments of a call. A model may state any type that the schema allows, before it knows the value. */
const callArguments = (w: CallWriter, tool: CallableTool): string =>
  rawArguments(w, tool, {
    open: (key) => `${OPEN}argument key="${escaped(key)}" type="`,
    stated: (types = new Set(TYPES)) =>
      `(${[...types].map((type) => w.text(type)).join(" | ")}) ${w.text(`"${SEPARATOR}`)}`,
    close: ARGUMENT_END,
  });

/** Calls in the exact spelling of the format. All arguments of a call may stand in one element of JSON. */
const exactElements = (tools: readonly Tool[]): ExactCalls => ({
  patterns: {
    open: /\s*<\|open\|>call tool="([^"]*)"[^<]*<\|sep\|>\s*/y,
    argument: /<\|open\|>(?:argument key="([^"]*)"|json\b)([^<]*)<\|sep\|>/y,
    end: ([, key]) => (key === undefined ? JSON_END : ARGUMENT_END),
    close: /<\|close\|>call<\|sep\|>\s*|$/y,
  },
  tools,
  nameOf: unescaped,
  valueOf: (at, text, [, , says]) =>
    says!.includes('type="string"') && takesAnyText(tools, at) ? text : typedValue(tools, at, text), // it always matches
});

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
const unescaped = (text: string): string => text.replaceAll("&quot;", '"').replaceAll("&amp;", "&");
