/** Formats that write calls as Python between tags; some of their models write JSON there too. */
import { listOf } from "./call-grammar.ts";
import { plainForced, type ToolFormat } from "./format.ts";
import { callsInJson } from "./json-calls.ts";
import { callsInPython } from "./python-calls.ts";
import { isPython, pythonCall } from "./python-grammar.ts";
import { scanToTagOutsideStrings } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";

/** @param signs further texts in a template that show the format */
function pythonBetweenTags(open: string, close: string, signs: readonly string[] = []): ToolFormat {
  const opens = [open];
  const closes = [close];
  return {
    isIn: (source) => [open, ...signs].some((sign) => source.includes(sign)),
    markup: [open, close],
    forced: { ...plainForced, open: `${open}[` },
    grammar: (w) => {
      const comma = `${w.ws} "," ${w.ws}`;
      const python = w.tools.filter(isPython).map((tool) => w.define(pythonCall(w, tool)));
      const lists = python.length === w.tools.length ? [] : [listOf(w, w.json())];
      if (python.length > 0) {
        const one = w.define(python.join(" | "));
        lists.push(`"[" ${w.ws} ${w.many(one, comma)} ${w.ws} "]"`, w.many(one, '"\\u000a"'));
      }
      return [{ opens, rest: `${w.ws} (${lists.join(" | ")}) ${w.ws} ${w.text(close)}` }];
    },
    makeParser: () =>
      makeTaggedParser({
        opens,
        closes,
        makeScan: () => scanToTagOutsideStrings({ opens, closes, quotes: `"'` }),
        callsIn: (body) => {
          const calls = callsInPython(body);
          return calls.length > 0 ? calls : callsInJson(body);
        },
      }),
  };
}

/** LFM2: `<|tool_call_start|>[get_weather(city="Oslo")]<|tool_call_end|>`. Some templates show only the tools. */
export const lfm2 = pythonBetweenTags("<|tool_call_start|>", "<|tool_call_end|>", [
  "<|tool_list_start|>",
  '"List of tools: ["',
]);

/** OLMo 3: one call per line. */
export const olmo3 = pythonBetweenTags("<function_calls>", "</function_calls>");
