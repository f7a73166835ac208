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
import { plainForced, type ToolFormat } from "./format.ts";
import { callsInInvokes, invokes } from "./invoke.ts";
import { makeMessagesParser } from "./messages.ts";
import { scanToTag } from "./scan.ts";

const MESSAGE = "<|message|>";
const ENDS = ["<|eom|>", "<|eot|>"];
const START = "<|start|>";
const OPEN = "<atem:function_calls>";
const CLOSE = "</atem:function_calls>";

export const glimmer: ToolFormat = {
  isIn: (source) => source.includes(OPEN), // the format's only tag
  markup: [...ENDS, START, MESSAGE, OPEN, CLOSE],
  forced: { ...plainForced, open: ` to=user${MESSAGE}` },
  grammar: (w) => [{ opens: [OPEN], rest: `${invokes(w, "atem:")} ${w.text(CLOSE)}` }],
  makeParser: (tools) =>
    makeMessagesParser({
      starts: [START],
      firsts: ["to="],
      bodies: [MESSAGE],
      ends: ENDS,
      kindOf: (header) => {
        const recipient = /\bto=(\S+)/.exec(header)?.[1] ?? "user";
        return recipient === "self" ? "thinking" : recipient === "user" ? "text" : { call: recipient };
      },
      callsIn: (body) => callsInInvokes(body.replaceAll(OPEN, "").replaceAll(CLOSE, ""), { prefix: "atem:", tools }),
      closings: ["</atem:parameter>"],
      makeScan: (tags) => scanToTag({ ...tags, raw: { from: "<atem:parameter ", to: "</atem:parameter>" } }),
    }),
  marks: {
    thinking: { open: ` to=self${MESSAGE}`, close: "<|eom|>" },
    next: `${START}assistant`,
    answer: ` to=user${MESSAGE}`,
  },
};
