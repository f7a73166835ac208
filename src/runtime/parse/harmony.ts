/**
 * Harmony, the format of gpt-oss: an answer is a sequence of messages, each with a header that names its channel.
 *
 *     <|channel|>analysis<|message|>The user wants …<|end|>
 *     <|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>
 *     <|start|>assistant<|channel|>final<|message|>It is cold.<|return|>
 *
 * Analysis is thinking; a message with a recipient is a call; everything else is text. A call with invalid arguments
 * comes out as text.
 */
import { plainForced, type ToolFormat } from "./format.ts";
import { makeCall } from "./json-calls.ts";
import { makeMessagesParser } from "./messages.ts";

const MESSAGE = "<|message|>";
const ENDS = ["<|end|>", "<|return|>", "<|call|>"];
const HEADER_TAGS = ["<|start|>", "<|channel|>", "<|constrain|>"];

export const harmony: ToolFormat = {
  isIn: (source) => source.includes("<|start|>") && source.includes("<|channel|>"),
  markup: [...ENDS, ...HEADER_TAGS, MESSAGE],
  forced: { ...plainForced, open: `<|channel|>commentary <|constrain|>json${MESSAGE}` },
  grammar: (w) => {
    const channel = `(${w.text("<|channel|>")} ("commentary" | "analysis"))?`;
    const json = `(" "? ${w.text("<|constrain|>")} "json" | " json")?`;
    const rest = w.perTool(
      (tool) =>
        `${w.text(`functions.${tool.name}`)} ${w.define(`${channel} ${json}`)} ${w.text(MESSAGE)} ${w.args(tool)}`,
    );
    const headers = ["<|channel|>commentary", "<|channel|>analysis", "<|start|>assistant"].map((each) => `${each} to=`);
    return [
      { opens: headers, rest, end: "<|call|>" },
      { opens: [" to=", "to="], atStart: true, rest, end: "<|call|>" },
    ];
  },
  makeParser: (_, promptEnd) =>
    makeMessagesParser({
      starts: HEADER_TAGS,
      firsts: ["to="],
      bodies: [MESSAGE],
      ends: ENDS,
      kindOf,
      promptEnd,
      callsIn: (body, name) => {
        const call = makeCall(name, body.trim() === "" ? {} : body.trim());
        return call ? [call] : [];
      },
    }),
  marks: {
    thinking: { open: `<|channel|>analysis${MESSAGE}`, close: "<|end|>" },
    next: "<|start|>assistant",
    answer: `<|channel|>final${MESSAGE}`,
  },
};

function kindOf(header: string) {
  const recipient = /\bto=(?:functions\.)?([^\s<]+)/.exec(header)?.[1];
  if (recipient !== undefined && recipient !== "assistant") return { call: recipient };
  return /<\|channel\|>\s*analysis/.test(header) ? "thinking" : "text";
}
