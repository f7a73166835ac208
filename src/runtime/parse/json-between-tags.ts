/** Formats that write calls as JSON after an opening tag, mostly with a closing tag. */
import { listOf } from "./call-grammar.ts";
import type { CallWriter } from "./call-writer.ts";
import { plainForced, type CallEvent, type ForcedCall, type ToolFormat } from "./format.ts";
import { callsByName, callsInJson } from "./json-calls.ts";
import { scanBalanced, scanToTagOutsideStrings } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";

interface JsonBetweenTags {
  readonly isIn: (source: string) => boolean;
  readonly open: string;
  /** Other spellings of the opening tag. */
  readonly also?: readonly string[];
  /** Absent: a call ends with its JSON. */
  readonly close?: string;
  readonly forced?: Partial<ForcedCall>;
  /** The text between the tags; absent: a list of calls. */
  readonly body?: (w: CallWriter, one: string) => string;
  /** One call; absent: an object with the keys of a forced one. */
  readonly one?: (w: CallWriter) => string;
  /** Reads the calls in a body; absent: each call has its name under a key. */
  readonly callsIn?: (body: string) => readonly CallEvent[];
}

function jsonBetweenTags(format: JsonBetweenTags): ToolFormat {
  const { isIn, open, also = [], close, callsIn, body = listOf } = format;
  const opens = [open, ...also];
  const closes = close === undefined ? [] : [close];
  const forced = { ...plainForced, open, ...format.forced };
  const oneOf = format.one ?? ((w) => w.json({ name: forced.name, arguments: [forced.arguments] }));
  return {
    isIn,
    markup: [...opens, ...closes],
    forced,
    grammar: (w) => [
      {
        opens,
        rest: `${w.ws} ${body(w, oneOf(w))}${close === undefined ? "" : ` ${w.ws} ${w.text(close)}`}`,
      },
    ],
    makeParser: () =>
      makeTaggedParser({
        opens,
        closes,
        makeScan: () => (closes.length > 0 ? scanToTagOutsideStrings({ opens, closes }) : scanBalanced({ opens })),
        callsIn: callsIn ?? callsInJson,
      }),
  };
}

const single = (_: CallWriter, one: string): string => one;

/** A list, or one call to a line. */
const listOrLines = (w: CallWriter, one: string): string => `(${listOf(w, one)} | ${w.many(one, '"\\u000a"')})`;

/** Hermes and Qwen models, Granite 4, and the embedded model. */
export const hermes = jsonBetweenTags({
  isIn: (source) =>
    source.includes("<tool_call>") &&
    /arguments\\?"/.test(source) &&
    !/<function=|<arg_key>|<tool_calls>\[/.test(source),
  open: "<tool_call>",
  close: "</tool_call>",
  forced: { open: "<tool_call>\n" },
  body: single,
});

/** Granite 3: a list without a closing tag. */
export const granite = jsonBetweenTags({
  isIn: (source) => source.includes("<|tool_call|>") && !source.includes("<|/tool_call|>"),
  open: "<|tool_call|>",
  forced: { open: "<|tool_call|>[" },
});

/** Phi-4-mini. */
export const phi4 = jsonBetweenTags({
  isIn: (source) => source.includes("<|/tool_call|>"),
  open: "<|tool_call|>",
  close: "<|/tool_call|>",
  forced: { open: "<|tool_call|>[" },
});

/** Nemotron Nano 2. */
export const nemotron = jsonBetweenTags({
  isIn: (source) => source.includes("<TOOLCALL>"),
  open: "<TOOLCALL>",
  close: "</TOOLCALL>",
  forced: { open: "<TOOLCALL>[" },
});

/** Jamba, Apriel, MiniMax M1. */
export const jamba = jsonBetweenTags({
  isIn: (source) => source.includes("<tool_calls>"),
  open: "<tool_calls>",
  close: "</tool_calls>",
  forced: { open: "<tool_calls>[" },
  body: listOrLines,
});

/** Command R7B and Command A. */
export const cohere = jsonBetweenTags({
  isIn: (source) => source.includes("<|START_ACTION|>"),
  open: "<|START_ACTION|>",
  close: "<|END_ACTION|>",
  forced: { open: "<|START_ACTION|>[\n    ", name: "tool_name", arguments: "parameters" },
  one: (w) =>
    w.json({
      name: "tool_name",
      arguments: ["parameters"],
      lead: `("\\u0022tool" "\\u005f" "call" "\\u005f" "id\\u0022:" ${w.ws} "\\u0022" [0-9]{1,3} "\\u0022," ${w.ws})?`,
    }),
});

/** Command R and R+: a fenced block. */
export const commandR = jsonBetweenTags({
  isIn: (source) => /Action:(?: |\\n|\n)```json/.test(source),
  open: "Action: ```json",
  also: ["Action:\n```json"],
  close: "```",
  forced: { open: "Action: ```json\n[\n    ", name: "tool_name", arguments: "parameters" },
});

/** Firefunction. */
export const firefunction = jsonBetweenTags({
  isIn: (source) => source.includes("functools["),
  open: "functools",
  forced: { open: "functools[" },
});

/** GigaChat 3.1, and 3 in a separate message. */
export const gigachat = jsonBetweenTags({
  isIn: (source) => source.includes("<|role_sep|>") && /<\|function_call\|>|function call/.test(source),
  open: "<|function_call|>",
  also: ["<|message_sep|>\n\nfunction call<|role_sep|>\n"],
  body: single,
});

/** Apertus: a list of objects, each under the name of its tool. */
export const apertus = jsonBetweenTags({
  isIn: (source) => source.includes("<|tools_prefix|>"),
  open: "<|tools_prefix|>",
  close: "<|tools_suffix|>",
  forced: { open: "<|tools_prefix|>[" },
  one: (w) =>
    w.perTool((tool) => `"{" ${w.ws} ${w.text(JSON.stringify(tool.name))} ":" ${w.ws} ${w.args(tool)} ${w.ws} "}"`),
  callsIn: (body) => {
    const calls = callsByName(body);
    return calls.length > 0 ? calls : callsInJson(body);
  },
});
