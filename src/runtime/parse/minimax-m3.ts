/**
 * Calls as MiniMax M3 writes them: XML whose tags stand after a mark, so that values cannot contain tags. An argument
 * has the name of its tag; lists have `item`s.
 *
 *     ]<]minimax[>[<tool_call>
 *     ]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Oslo]<]minimax[>[</city>]<]minimax[>[</invoke>
 *     ]<]minimax[>[</tool_call>
 */
import type { Tool } from "../requests/runtime.ts";
import { endOfValue } from "./exact-calls.ts";
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { callsInJson, makeCall, parseJson } from "./json-calls.ts";
import { propertiesOf, rawArgument } from "./raw-arguments.ts";
import { scanToTag } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";
import { hasJsonStrings, typedValue } from "./typed-values.ts";

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
    const upToMark = w.upTo(MARK);
    const one = w.perTool((tool) => {
      const args = propertiesOf(tool).map(({ key, ...property }) => {
        const marks = {
          open: () => `${MARK}<${key}>`,
          close: `${MARK}</${key}>`,
          stop: MARK,
          free: `${upToMark} ${w.text(`</${key}>`)}`,
        };
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
      makeScan: () =>
        scanToTag({ opens: OPENS, closes: CLOSES, isInside: (body) => readElements(body, tools) === "open" }),
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
  const root = readElements(body, tools);
  const calls = (root === "open" ? [] : (root?.children ?? [])).map((element) => callIn(element, tools));
  return calls.every((call) => call !== undefined) ? calls : [];
}

/** The elements of a text under one; "open": it ends inside a string of JSON; undefined if they do not nest. */
function readElements(body: string, tools: readonly Tool[]): Element | "open" | undefined {
  const open: Element[] = [{ tag: "", children: [], text: "" }];
  for (let at = 0; at < body.length;) {
    const last = open.at(-1)!;
    const isJson = open.length === 3 && hasJsonStrings(tools, { name: nameIn(open[1]!) ?? "", argument: last.tag });
    const to = endOfValue(body, { from: at, end: MARK, isJson });
    if (to === "open") return to;
    last.text += body.slice(at, to);
    if (to === undefined) break;
    const found = /<(\/?)([^>]+)>/y;
    found.lastIndex = to + MARK.length;
    const [whole, slash, tag = ""] = found.exec(body) ?? [];
    if (whole === undefined) return undefined;
    at = to + MARK.length + whole.length;
    if (slash === "/") {
      if (open.length < 2 || ![last.tag, last.tag.split(" ")[0]].includes(tag)) return undefined;
      open.pop();
    } else {
      const element = { tag, children: [], text: "" };
      last.children.push(element);
      if (open.push(element) > DEPTH_MAX) return undefined;
    }
  }
  return open.length === 1 ? open[0] : undefined;
}

const nameIn = ({ tag }: Pick<Element, "tag">): string | undefined => /^invoke name="([^"]+)"$/.exec(tag)?.[1];

function callIn({ tag, children }: Element, tools: readonly Tool[]): CallEvent | undefined {
  const name = nameIn({ tag });
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
