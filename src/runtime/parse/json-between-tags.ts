/** Formats that write calls as JSON after an opening tag, mostly with a closing tag. */
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
  /** Reads the calls in a body; absent: each call has its name under a key. */
  readonly callsIn?: (body: string) => readonly CallEvent[];
}

function jsonBetweenTags({ isIn, open, also = [], close, forced, callsIn }: JsonBetweenTags): ToolFormat {
  const opens = [open, ...also];
  const closes = close === undefined ? [] : [close];
  return {
    isIn,
    markup: [...opens, ...closes],
    forced: { ...plainForced, open, ...forced },
    makeParser: () =>
      makeTaggedParser({
        opens,
        closes,
        makeScan: () => (closes.length > 0 ? scanToTagOutsideStrings({ opens, closes }) : scanBalanced({ opens })),
        callsIn: callsIn ?? callsInJson,
      }),
  };
}

/** Hermes and Qwen models, Granite 4, and the embedded model. */
export const hermes = jsonBetweenTags({
  isIn: (source) =>
    source.includes("<tool_call>") &&
    /arguments\\?"/.test(source) &&
    !/<function=|<arg_key>|<tool_calls>\[/.test(source),
  open: "<tool_call>",
  close: "</tool_call>",
  forced: { open: "<tool_call>\n" },
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
});

/** Command R7B and Command A. */
export const cohere = jsonBetweenTags({
  isIn: (source) => source.includes("<|START_ACTION|>"),
  open: "<|START_ACTION|>",
  close: "<|END_ACTION|>",
  forced: { open: "<|START_ACTION|>[\n    ", name: "tool_name", arguments: "parameters" },
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

/** GigaChat 3.1, and 3 in a message of its own. */
export const gigachat = jsonBetweenTags({
  isIn: (source) => source.includes("<|role_sep|>") && /<\|function_call\|>|function call/.test(source),
  open: "<|function_call|>",
  also: ["<|message_sep|>\n\nfunction call<|role_sep|>\n"],
});

/** Apertus: a list of objects, each under the name of its tool. */
export const apertus = jsonBetweenTags({
  isIn: (source) => source.includes("<|tools_prefix|>"),
  open: "<|tools_prefix|>",
  close: "<|tools_suffix|>",
  forced: { open: "<|tools_prefix|>[" },
  callsIn: (body) => {
    const calls = callsByName(body);
    return calls.length > 0 ? calls : callsInJson(body);
  },
});
