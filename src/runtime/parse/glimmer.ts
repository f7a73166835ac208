/**
 * Glimmer: an answer is a sequence of messages, each with a recipient. A message to the model itself is thinking, one
 * to the user is text, one to a tool is a call.
 *
 *      to=self<|message|>The user wants …<|eom|>
 *     <|start|>assistant to=weather<|message|><atem:function_calls>
 *     <atem:invoke name="weather">
 *     <atem:parameter name="city">Oslo</atem:parameter>
 *     </atem:invoke>
 *     </atem:function_calls><|eot|>
 *     <|start|>assistant to=user<|message|>It is cold.<|eot|>
 */
import { exactCalls, isInsideJson } from "./exact-calls.ts";
import { plainForced, type ToolFormat } from "./format.ts";
import { exactInvokes, invokes } from "./invoke.ts";
import { makeMessagesParser } from "./messages.ts";
import { scanToTag } from "./scan.ts";

const MESSAGE = "<|message|>";
const ENDS = ["<|eom|>", "<|eot|>"];
const START = "<|start|>";
const PREFIX = "atem:";
const OPEN = `<${PREFIX}function_calls>`;
const CLOSE = `</${PREFIX}function_calls>`;

export const glimmer: ToolFormat = {
  isIn: (source) => source.includes(OPEN), // the format's only tag
  markup: [...ENDS, START, MESSAGE, OPEN, CLOSE],
  forced: { ...plainForced, open: ` to=user${MESSAGE}` },
  grammar: (w) => [{ opens: [OPEN], rest: `${invokes(w, PREFIX)} ${w.text(CLOSE)}` }],
  makeParser: (tools, promptEnd) =>
    makeMessagesParser({
      starts: [START],
      firsts: ["to="],
      bodies: [MESSAGE],
      ends: ENDS,
      kindOf: (header) => {
        const recipient = /\bto=(\S+)/.exec(header)?.[1] ?? "user";
        return recipient === "self" ? "thinking" : recipient === "user" ? "text" : { call: recipient };
      },
      callsIn: (body) => exactCalls(withoutTags(body), exactInvokes({ prefix: PREFIX, tools })) ?? [],
      promptEnd,
      closings: ["</atem:parameter>"],
      makeScan: (tags) => {
        const exact = exactInvokes({ prefix: PREFIX, tools });
        const isInside = (body: string): boolean => isInsideJson(body.replace(OPEN, ""), exact);
        return scanToTag({ ...tags, raw: { from: `<${PREFIX}parameter `, to: `</${PREFIX}parameter>` }, isInside });
      },
    }),
  marks: {
    thinking: { open: ` to=self${MESSAGE}`, close: "<|eom|>" },
    next: `${START}assistant`,
    answer: ` to=user${MESSAGE}`,
  },
};

/** A body without the tags around its calls, which values may contain. */
function withoutTags(body: string): string {
  const text = body.replace(new RegExp(`^\\s*${OPEN}`), "");
  return text.replace(new RegExp(`${CLOSE}\\s*$`), "");
}
