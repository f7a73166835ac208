/**
 * Calls of MiniMax M2 and DeepSeek V3.2: XML with attributes, in a model-specific namespace.
 *
 *     <minimax:tool_call>
 *     <invoke name="get_weather">
 *     <parameter name="city">Oslo</parameter>
 *     </invoke>
 *     </minimax:tool_call>
 */
import type { Tool } from "../requests/runtime.ts";
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { callsInJson, makeCall, parseJson } from "./json-calls.ts";
import { scanToTag } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";
import { typedValue } from "./typed-values.ts";

function invokeBetween(tags: readonly string[], prefix = ""): ToolFormat {
  const sign = prefix || tags[0]!; // at least one
  const opens = tags.map((tag) => `<${prefix}${tag}>`);
  const closes = tags.map((tag) => `</${prefix}${tag}>`);
  return {
    isIn: (source) => source.includes(sign),
    markup: [...opens, ...closes],
    forced: { ...plainForced, open: `${opens[0]}\n` },
    makeParser: (tools) =>
      makeTaggedParser({
        opens,
        closes,
        makeScan: () => scanToTag({ opens, closes }),
        closings: [`</${prefix}parameter>`],
        callsIn: (body) =>
          body.trimStart().startsWith("{") ? callsInJson(body) : callsInInvokes(body, { prefix, tools }),
      }),
  };
}

/** MiniMax M2. */
export const minimax = invokeBetween(["minimax:tool_call"]);

/** DeepSeek V4 and V3.2. Each argument says whether it is text: `string="true"`. */
export const dsml = invokeBetween(["tool_calls", "function_calls"], "｜DSML｜");

interface Dialect {
  /** Namespace of the inner tags, with its colon. */
  readonly prefix: string;
  readonly tools: readonly Tool[];
}

/** Empty if any part is not a call. */
export function callsInInvokes(body: string, dialect: Dialect): CallEvent[] {
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
    const key = /^name="([^"]+)"([^>]*)>/.exec(part);
    const end = part.lastIndexOf(`</${prefix}parameter>`);
    if (!key || end < 0) return undefined;
    const at = { name: name[1]!, argument: key[1]! }; // the groups always match
    const text = part.slice(key[0].length, end);
    const says = /\bstring="(true|false)"/.exec(key[2]!)?.[1]; // the group may be empty but always matches
    if (says === "true") return [at.argument, text];
    return [at.argument, (says === "false" ? parseJson(text) : undefined) ?? typedValue(tools, at, text)];
  });
  return args.every((arg) => arg !== undefined) ? makeCall(name[1], Object.fromEntries(args)) : undefined;
}
