/**
 * Calls as MiniCPM 5 writes them: an element for the function and one for each argument, whose text may be raw.
 *
 *     <function name="weather"><param name="city">Oslo</param><param name="note"><![CDATA[a < b]]></param></function>
 */
import { add, reserve } from "../../engine/index.ts";
import type { CallWriter } from "./call-writer.ts";
import { makeExactParser, type ExactCalls } from "./exact-calls.ts";
import { plainForced, type ToolFormat } from "./format.ts";
import { rawArguments } from "./raw-arguments.ts";
import { typedValue } from "./typed-values.ts";

const OPEN = '<function name="';
const CLOSE = "</function>";
const END = "</param>";
const RAW = "<![CDATA[";
const RAW_END = "]]>";
const PATTERNS = {
  open: /([^"]+)">\s*/y,
  argument: /<param name="([^"]+)">(<!\[CDATA\[)?/y,
  end: ([, , isRaw]: RegExpExecArray) => (isRaw ? RAW_END + END : END),
};

export const minicpm: ToolFormat = {
  isIn: (source) => source.includes("<function name=") && source.includes("<param name="),
  markup: [OPEN, CLOSE],
  forced: plainForced,
  grammar: (w) => {
    const open = (key: string): string => `<param name="${key}">${RAW}`;
    const marks = { open, close: RAW_END + END, stop: RAW_END, free: `${upToRawEnd(w)} ${w.text(END)}` };
    const rest = w.perTool((tool) => {
      const args = rawArguments(w, tool, marks);
      return `${w.text(`${tool.name}">`)} ${w.ws} ${args} ${w.text(CLOSE)}`;
    });
    return [{ opens: [OPEN], rest }];
  },
  makeParser: (tools) => {
    const exact: ExactCalls = { patterns: PATTERNS, tools, valueOf: (at, text) => typedValue(tools, at, text) };
    return makeExactParser({
      opens: [OPEN],
      closes: [CLOSE],
      raw: { from: RAW, to: RAW_END },
      exact,
      closings: [RAW_END + END, END],
    });
  },
};

/** Any text up to the first `]]>`, and that. The library's own expression would miss the mark in `]]]>`. */
function upToRawEnd(w: CallWriter): string {
  // By the number of brackets that end the text
  const [none, one, two] = [reserve(w.rules), reserve(w.rules), reserve(w.rules)];
  add(w.rules, none, `[^\\u005d] ${none} | "]" ${one}`);
  add(w.rules, one, `[^\\u005d] ${none} | "]" ${two}`);
  add(w.rules, two, `[^\\u005d\\u003e] ${none} | "]" ${two} | ">"`);
  return none;
}
