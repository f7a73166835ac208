/**
 * Functionary 3.2: an answer is a sequence of messages, each with its recipient on a separate line. `all` is text.
 *
 *     all
 *     Let me see.>>>get_weather
 *     {"city": "Oslo"}
 */
import { plainForced, type ToolFormat } from "./format.ts";
import { makeCall } from "./json-calls.ts";
import { makeMessagesParser } from "./messages.ts";

const NEXT = ">>>";

export const functionary: ToolFormat = {
  isIn: (source) => source.includes(`${NEXT}all`),
  markup: [NEXT],
  forced: { ...plainForced, open: "all\n" },
  grammar: (w) => {
    const next = w.perTool((tool) => `${w.text(`${tool.name}\n`)} ${w.args(tool)}`);
    return w.tools.flatMap((tool) => {
      const more = w.many("", `${w.text(NEXT)} ${next}`);
      const rest = `${w.args(tool)} ${more}`;
      return [
        { opens: [`${tool.name}\n`], atStart: true, rest, end: "" },
        { opens: [`${NEXT}${tool.name}\n`], rest, end: "" },
      ];
    });
  },
  makeParser: () =>
    makeMessagesParser({
      starts: [],
      firsts: [""],
      bodies: ["\n"],
      ends: [NEXT],
      kindOf: (header) => {
        const name = header.trimEnd();
        if (name === "all") return "text";
        return /^[\w.-]+$/.test(name) ? { call: name } : undefined;
      },
      callsIn: (body, name) => {
        const call = makeCall(name, body.trim());
        return call ? [call] : [];
      },
    }),
  marks: { next: NEXT, answer: "all\n" },
};
