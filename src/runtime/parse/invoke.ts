/**
 * Calls as MiniMax M2 and others write them: XML with attributes, under a name of the model's own.
 *
 *     <minimax:tool_call>
 *     <invoke name="get_weather">
 *     <parameter name="city">Oslo</parameter>
 *     </invoke>
 *     </minimax:tool_call>
 */
import type { Tool } from "../runtime.ts";
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { callsInJson, makeCall } from "./json-calls.ts";
import { scanToTag } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";
import { typedValue } from "./typed-values.ts";

function invokeBetween(tag: string, prefix = ""): ToolFormat {
  const opens = [`<${tag}>`];
  const closes = [`</${tag}>`];
  return {
    isIn: (source) => source.includes(opens[0]!), // its only one
    markup: [...opens, ...closes],
    forced: { ...plainForced, open: `<${tag}>\n` },
    makeParser: (tools) =>
      makeTaggedParser({
        opens,
        closes,
        makeScan: () => scanToTag({ opens, closes }),
        callsIn: (body) => (body.trimStart().startsWith("{") ? callsInJson(body) : callsIn(body, { prefix, tools })),
      }),
  };
}

/** MiniMax M2. */
export const minimax = invokeBetween("minimax:tool_call");

/** Glimmer. */
export const glimmer = invokeBetween("atem:function_calls", "atem:");

interface Dialect {
  /** Namespace of the inner tags, with its colon. */
  readonly prefix: string;
  readonly tools: readonly Tool[];
}

function callsIn(body: string, dialect: Dialect): CallEvent[] {
  const [before = "", ...parts] = body.split(`<${dialect.prefix}invoke `);
  const calls = parts.map((part) => callIn(part, dialect));
  return before.trim() === "" && calls.every((call) => call !== undefined) ? calls : [];
}

function callIn(text: string, { prefix, tools }: Dialect): CallEvent | undefined {
  const name = /^name="([^"]+)"\s*>/.exec(text);
  if (!name) return undefined;
  const [between = "", ...parts] = text.slice(name[0].length).split(`<${prefix}parameter `);
  if (between.replace(`</${prefix}invoke>`, "").trim() !== "") return undefined;
  const args = parts.map((part): [string, unknown] | undefined => {
    const key = /^name="([^"]+)"[^>]*>/.exec(part);
    const end = part.lastIndexOf(`</${prefix}parameter>`);
    if (!key || end < 0) return undefined;
    const at = { name: name[1]!, argument: key[1]! }; // both groups always match
    return [at.argument, typedValue(tools, at, part.slice(key[0].length, end))];
  });
  return args.every((arg) => arg !== undefined) ? makeCall(name[1], Object.fromEntries(args)) : undefined;
}
