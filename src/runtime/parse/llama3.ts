/**
 * Llama 3.1 and later: bare JSON as the whole answer, or after a tag; several calls are separated by semicolons. The
 * built-in tools of these models are called in Python. Bare JSON without arguments that names no tool is an answer.
 *
 *     {"name": "get_weather", "parameters": {"city": "Oslo"}}
 *     <|python_tag|>brave_search.call(query="weather in Oslo")
 */
import { namedCalls } from "./named-calls.ts";
import type { ToolFormat } from "./format.ts";
import { callsInJson } from "./json-calls.ts";
import { callsInPython } from "./python-calls.ts";
import { isPython, pythonCall } from "./python-grammar.ts";
import { scanBalanced, scanToTag, type Scan } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";

const TAG = "<|python_tag|>";
const KEYS = { arguments: ["parameters", "arguments"] } as const;
const ARGUMENTS = /"(?:parameters|arguments)"\s*:/;
const PYTHON_END = ["<|eom_id|>", "<|eot_id|>"];

export const llama3: ToolFormat = {
  isIn: (source) => source.includes(TAG) || (/"parameters\\?": ?/.test(source) && source.includes("<|eot_id|>")),
  markup: [TAG],
  forced: { open: "", name: "name", arguments: "parameters" },
  grammar: (w) => {
    const python = w.perTool((tool) => (isPython(tool) ? pythonCall(w, tool, ".call") : w.json(KEYS)));
    return [...namedCalls(w, KEYS.arguments), { opens: [TAG], rest: `${w.ws} (${w.json(KEYS)} | ${python})` }];
  },
  makeParser: (tools) =>
    makeTaggedParser({
      opens: [TAG],
      closes: [],
      makeScan: (open) => (open === TAG ? scanTagged() : scanBalanced()),
      callsIn: (body, open) => {
        if (!body.trimStart().startsWith("{")) return callsInPython(body, { suffix: ".call" });
        const calls = callsInJson(body);
        const isNamed = (name: string): boolean => tools.some((tool) => tool.function.name === name);
        const isSure = open === TAG || ARGUMENTS.test(body) || calls.every(({ name }) => isNamed(name));
        return isSure ? calls : [];
      },
      openAtStart: "{",
    }),
};

/** JSON ends at its closing bracket, Python at the end of the answer. */
function scanTagged(): Scan {
  let scan: Scan | undefined;
  return (body) => {
    const text = body.trimStart();
    if (text === "") return undefined;
    scan ??= text.startsWith("{") ? scanBalanced() : scanToTag({ opens: [TAG], closes: PYTHON_END });
    return scan(body);
  };
}
