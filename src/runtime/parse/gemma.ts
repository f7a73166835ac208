/**
 * Calls as FunctionGemma and Gemma 4 write them: a name and arguments in braces, with texts between marks of their own
 * instead of quotes.
 *
 *     <start_function_call>call:get_weather{city:<escape>Oslo<escape>,days:2}<end_function_call>
 *     <|tool_call>call:get_weather{city:<|"|>Oslo<|"|>,days:2}<tool_call|>
 */
import { isObject } from "../../base/index.ts";
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { gemmaArguments } from "./gemma-grammar.ts";
import { callsInJson, makeCall, parseJson } from "./json-calls.ts";
import { scanToTag, type Scan } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";

function gemmaCalls({ open, close, quote }: { open: string; close: string; quote: string }): ToolFormat {
  const opens = [open];
  const closes = [close];
  return {
    isIn: (source) => source.includes(open),
    markup: [open, close, quote],
    forced: { ...plainForced, open },
    grammar: (w) => {
      const one = w.perTool((tool) => `${w.text(`call:${tool.name}`)} ${gemmaArguments(w, tool, quote)}`);
      return [{ opens, rest: `${one} ${w.text(close)}` }];
    },
    makeParser: () =>
      makeTaggedParser({
        opens,
        closes,
        makeScan: (): Scan => scanToTag({ opens, closes, raw: { from: quote, to: quote } }),
        closings: ["}", `${quote}}`, "]}", `${quote}]}`],
        callsIn: (body) => (body.trimStart().startsWith("{") ? callsInJson(body) : callIn(body, quote)),
      }),
  };
}

export const functionGemma = gemmaCalls({
  open: "<start_function_call>",
  close: "<end_function_call>",
  quote: "<escape>",
});

export const gemma4 = gemmaCalls({ open: "<|tool_call>", close: "<tool_call|>", quote: '<|"|>' });

function callIn(body: string, quote: string): CallEvent[] {
  const found = /^(?:call:\s*)?([^\s{:]+)\s*(\{[^]*\})$/.exec(body.trim());
  const args = found && parseJson(toJson(found[2]!, quote)); // both groups always match
  const call = found && isObject(args) ? makeCall(found[1], args) : undefined;
  return call ? [call] : [];
}

/** The arguments as JSON: marked texts in quotes, bare keys and words too. */
function toJson(text: string, quote: string): string {
  return text
    .split(quote)
    .map((part, i) => (i % 2 === 1 ? JSON.stringify(part) : quoteWords(part)))
    .join("");
}

/** A quoted text (the closing quote may be missing), or a word. */
const WORDS = /"(?:[^"\\]|\\.)*"|"[^]*$|[^\s{}[\],:"]+/g;

/** Quotes words that are neither numbers nor constants; quoted texts stay unchanged. */
const quoteWords = (text: string): string =>
  text.replace(WORDS, (word) => (parseJson(word) === undefined ? JSON.stringify(word) : word));
