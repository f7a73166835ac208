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
import type { CallWriter } from "./call-writer.ts";
import { makeExactParser, type ExactCalls } from "./exact-calls.ts";
import { plainForced, type ToolFormat } from "./format.ts";
import { parseJson } from "./json-calls.ts";
import { rawArguments } from "./raw-arguments.ts";
import { typedValue } from "./typed-values.ts";

const DSML = "｜DSML｜";

function invokeBetween(tags: readonly string[], prefix = ""): ToolFormat {
  const raw = { from: `<${prefix}parameter `, to: `</${prefix}parameter>` };
  const sign = prefix || tags[0]!; // at least one
  const opens = tags.map((tag) => `<${prefix}${tag}>`);
  const closes = tags.map((tag) => `</${prefix}${tag}>`);
  return {
    isIn: (source) => source.includes(sign),
    markup: [...opens, ...closes],
    forced: { ...plainForced, open: `${opens[0]}\n` },
    grammar: (w) => {
      const inner = invokes(w, prefix);
      // One per opening text
      return opens.map((open, i) => ({ opens: [open], rest: `${inner} ${w.text(closes[i]!)}` }));
    },
    makeParser: (tools) => makeExactParser({ opens, closes, raw, exact: exactInvokes({ prefix, tools }) }),
  };
}

/** MiniMax M2. */
export const minimax = invokeBetween(["minimax:tool_call"]);

/** DeepSeek V4 and V3.2. Each argument says whether it is text: `string="true"`. */
export const dsml = invokeBetween(["tool_calls", "function_calls"], DSML);

interface Dialect {
  /** Namespace of the inner tags, with its colon. */
  readonly prefix: string;
  readonly tools: readonly Tool[];
}

/** Calls, and the blanks around them. DeepSeek's calls mark each argument as text or JSON. */
export function invokes(w: CallWriter, prefix: string): string {
  const open = (key: string, type: string): string =>
    `<${prefix}parameter name="${key}"${prefix === DSML ? ` string="${type === "string"}"` : ""}>`;
  const one = w.perTool((tool) => {
    const args = rawArguments(w, tool, { open, close: `</${prefix}parameter>` });
    return `${w.text(`<${prefix}invoke name="${tool.name}">`)} ${w.ws} ${args} ${w.text(`</${prefix}invoke>`)}`;
  });
  return `${w.ws} ${w.many(one, w.ws)} ${w.ws}`;
}

/** Calls in the exact spelling of the format. */
export const exactInvokes = ({ prefix, tools }: Dialect): ExactCalls => ({
  patterns: {
    open: new RegExp(`\\s*<${prefix}invoke name="([^"]+)"\\s*>\\s*`, "y"),
    argument: new RegExp(`<${prefix}parameter name="([^"]+)"([^>]*)>`, "y"),
    end: () => `</${prefix}parameter>`,
    close: new RegExp(`</${prefix}invoke>\\s*|$`, "y"),
  },
  tools,
  valueOf: (at, text, [, , says]) => valueOf(tools, { ...at, says: says! }, text), // the group always matches
});

/** @param at.says the attributes of the argument */
function valueOf(
  tools: readonly Tool[],
  { says, ...at }: { name: string; argument: string; says: string },
  text: string,
): unknown {
  const isText = /\bstring="(true|false)"/.exec(says)?.[1];
  if (isText === "true") return text;
  return (isText === "false" ? parseJson(text) : undefined) ?? typedValue(tools, at, text);
}
