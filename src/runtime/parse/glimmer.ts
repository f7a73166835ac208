/**
 * Glimmer: an answer is a row of messages, each with the name of who it is for. The model's own name for itself is
 * thinking, the user's is text, a tool's is a call.
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
import { callsInInvokes } from "./invoke.ts";
import { makeMessagesParser } from "./messages.ts";

const MESSAGE = "<|message|>";
const ENDS = ["<|eom|>", "<|eot|>"];
const START = "<|start|>";
const OPEN = "<atem:function_calls>";
const CLOSE = "</atem:function_calls>";

export const glimmer: ToolFormat = {
  isIn: (source) => source.includes(OPEN), // its only one
  markup: [...ENDS, START, MESSAGE, OPEN, CLOSE],
  forced: { ...plainForced, open: ` to=user${MESSAGE}` },
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
    }),
  marks: {
    thinking: { open: ` to=self${MESSAGE}`, close: "<|eom|>" },
    next: `${START}assistant`,
    answer: ` to=user${MESSAGE}`,
  },
};
