/**
 * Calls as MiniMax M3 writes them: XML whose tags stand after a mark, so that values cannot contain tags. An argument
 * has the name of its tag; lists have `item`s.
 *
 *     ]<]minimax[>[<tool_call>
 *     ]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Oslo]<]minimax[>[</city>]<]minimax[>[</invoke>
 *     ]<]minimax[>[</tool_call>
 */
import type { Tool } from "../requests/runtime.ts";
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { callsInJson, makeCall, parseJson } from "./json-calls.ts";
import { propertiesOf, rawArgument } from "./raw-arguments.ts";
import { scanToTag } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";
import { typedValue } from "./typed-values.ts";

const MARK = "]<]minimax[>[";
const OPENS = [`${MARK}<tool_call>`];
const CLOSES = [`${MARK}</tool_call>`];

/** Maximum nesting of elements. */
const DEPTH_MAX = 32;

export const minimaxM3: ToolFormat = {
  isIn: (source) => source.includes(MARK),
  markup: [...OPENS, ...CLOSES, MARK],
  forced: { ...plainForced, open: `${OPENS[0]}\n` },
  grammar: (w) => {
    const one = w.perTool((tool) => {
      const args = propertiesOf(tool).map(({ key, ...property }) => {
        const marks = { open: () => `${MARK}<${key}>`, close: `${MARK}</${key}>` };
        return rawArgument(w, tool, { key, ...property, marks });
      });
      return `${w.text(`${MARK}<invoke name="${tool.name}">`)} ${w.ws} ${args.join(" ")} ${w.text(`${MARK}</invoke>`)}`;
    });
    return [{ opens: OPENS, rest: `${w.ws} ${w.many(one, w.ws)} ${w.ws} ${w.text(CLOSES[0]!)}` }]; // there is one
  },
  makeParser: (tools) =>
    makeTaggedParser({
      opens: OPENS,
      closes: CLOSES,
      makeScan: () => scanToTag({ opens: OPENS, closes: CLOSES }),
      closings: [`${MARK}</invoke>`],
      callsIn: (body) => (body.trimStart().startsWith("{") ? callsInJson(body) : callsIn(body, tools)),
    }),
};

interface Element {
  readonly tag: string;
  readonly children: Element[];
  text: string;
}

function callsIn(body: string, tools: readonly Tool[]): CallEvent[] {
  const root = readElements(body);
  const calls = (root?.children ?? []).map((element) => callIn(element, tools));
  return calls.every((call) => call !== undefined) ? calls : [];
}

/** The elements of a text under one; undefined if they do not nest. */
function readElements(body: string): Element | undefined {
  const [before = "", ...parts] = body.split(MARK);
  const open: Element[] = [{ tag: "", children: [], text: before }];
  for (const part of parts) {
    const found = /^<(\/?)([^>]+)>([^]*)$/.exec(part);
    const last = open.at(-1)!;
    if (!found) return undefined;
    const [, slash, tag = "", text = ""] = found;
    if (slash === "/") {
      if (open.length < 2 || last.tag.split(" ")[0] !== tag) return undefined;
      open.pop();
    } else {
      const element = { tag, children: [], text };
      last.children.push(element);
      if (open.push(element) > DEPTH_MAX) return undefined;
    }
  }
  return open.length === 1 ? open[0] : undefined;
}

function callIn({ tag, children }: Element, tools: readonly Tool[]): CallEvent | undefined {
  const name = /^invoke name="([^"]+)"$/.exec(tag)?.[1];
  if (name === undefined) return undefined;
  const args = children.map((child) => [
    child.tag,
    child.children.length > 0 ? valueOf(child) : typedValue(tools, { name, argument: child.tag }, child.text),
  ]);
  return makeCall(name, Object.fromEntries(args));
}

function valueOf({ children, text }: Element): unknown {
  if (children.length === 0) return parseJson(text) ?? text;
  if (children.every((child) => child.tag === "item")) return children.map(valueOf);
  return Object.fromEntries(children.map((child) => [child.tag, valueOf(child)]));
}
