/**
 * Calls as MiniCPM 5 writes them: an element for the function and one for each argument, whose text may be raw.
 *
 *     <function name="weather"><param name="city">Oslo</param><param name="note"><![CDATA[a < b]]></param></function>
 */
import type { Tool } from "../requests/runtime.ts";
import { findFirst, heldLengthOf, plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { makeCall } from "./json-calls.ts";
import { rawArguments } from "./raw-arguments.ts";
import type { Scan } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";
import { typedValue } from "./typed-values.ts";

const OPEN = '<function name="';
const CLOSE = "</function>";
const RAW = "<![CDATA[";
const RAW_END = "]]>";
const ARGUMENT = /<param name="([^"]+)">(?:<!\[CDATA\[([^]*?)\]\]>|([^]*?))<\/param>/g;

export const minicpm: ToolFormat = {
  isIn: (source) => source.includes("<function name=") && source.includes("<param name="),
  markup: [OPEN, CLOSE],
  forced: plainForced,
  grammar: (w) => {
    const open = (key: string): string => `<param name="${key}">${RAW}`;
    const rest = w.perTool((tool) => {
      const args = rawArguments(w, tool, { open, close: `${RAW_END}</param>` });
      return `${w.text(`${tool.name}">`)} ${w.ws} ${args} ${w.text(CLOSE)}`;
    });
    return [{ opens: [OPEN], rest }];
  },
  makeParser: (tools) =>
    makeTaggedParser({
      opens: [OPEN],
      closes: [CLOSE],
      makeScan,
      callsIn: (body) => callsIn(body, tools),
      closings: [`${RAW_END}</param>`, "</param>"],
    }),
};

/** Ends at the closing tag outside raw text. */
function makeScan(): Scan {
  const tags = [CLOSE, RAW];
  let at = 0;
  let inRaw = false;
  return (body) => {
    for (;;) {
      const wanted = inRaw ? [RAW_END] : tags;
      const found = findFirst(body.slice(at), wanted);
      if (!found) {
        at = body.length - heldLengthOf(body.slice(at), wanted);
        return undefined;
      }
      at += found.at;
      if (found.tag === CLOSE) return { at, length: CLOSE.length };
      at += found.tag.length;
      inRaw = !inRaw;
    }
  };
}

function callsIn(body: string, tools: readonly Tool[]): CallEvent[] {
  const head = /^([^"]+)">/.exec(body);
  const text = body.slice(head?.[0].length ?? 0);
  if (!head || text.replace(ARGUMENT, "").trim() !== "") return [];
  const name = head[1]!; // the group always matches
  const args = Array.from(text.matchAll(ARGUMENT), ([, argument = "", raw, plain = ""]) => [
    argument,
    typedValue(tools, { name, argument }, raw ?? plain),
  ]);
  const call = makeCall(name, Object.fromEntries(args));
  return call ? [call] : [];
}
