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
import { tagAt, type Scan } from "./scan.ts";
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
        makeScan: () => scanMarked({ opens, closes, quote }),
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
  return text.replace(partsOf(quote), (whole: string, marked?: string, word?: string, colon = "") => {
    if (marked !== undefined) return JSON.stringify(marked);
    if (word === undefined) return whole;
    if (colon !== "") return JSON.stringify(word) + colon;
    const constant = Object.hasOwn(CONSTANTS, word) ? CONSTANTS[word] : undefined;
    return constant ?? (parseJson(word) === undefined ? JSON.stringify(word) : whole);
  });
}

/** Python's constants, which templates print. */
const CONSTANTS: Readonly<Record<string, string>> = { None: "null", True: "true", False: "false" };

/** Parts of arguments: a marked text, a quoted text (its last mark or quote may be missing), a word and its colon. */
function partsOf(quote: string): RegExp {
  const mark = quote.replaceAll("|", String.raw`\|`);
  const marked = `${mark}([^]*?)(?:${mark}|$)`;
  const quoted = String.raw`"(?:[^"\\]|\\[^])*"|"[^]*$`;
  const word = String.raw`(?:(?!${mark})[^\s{}[\],:"])+`;
  return new RegExp(`${marked}|${quoted}|(${word}(?:\\s+${word})*)(\\s*:)?`, "g");
}

/** Ends at the first tag outside marked texts and strings of JSON. A quote begins a string where a value may begin. */
function scanMarked({ opens, closes, quote }: { opens: string[]; closes: string[]; quote: string }): Scan {
  const tags = [quote, ...opens, ...closes];
  let at = 0;
  let inside: "mark" | "string" | undefined;
  let before = ""; // the last character that is not blank
  return (body) => {
    for (; at < body.length; at++) {
      const c = body[at]!;
      if (inside === "string") {
        if (c === "\\" && at + 1 >= body.length) return undefined; // the escaped character has not arrived
        if (c === "\\") at++;
        else if (c === '"') inside = undefined;
        continue;
      }
      const found = tagAt(body, at, inside === "mark" ? [quote] : tags);
      if (found === "maybe") return undefined;
      if (found === quote) {
        inside = inside === "mark" ? undefined : "mark";
        at += quote.length - 1;
      } else if (found !== undefined) return { at, length: closes.includes(found) ? found.length : 0 };
      else if (inside === undefined && c === '"' && /[{[,:]/.test(before)) inside = "string";
      if (!/\s/.test(c)) before = c;
    }
    return undefined;
  };
}
