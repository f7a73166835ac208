/**
 * Calls as DeepSeek models write them. V3 and R1 name a type and put the arguments into a fence; V3.1 writes name and
 * arguments alone.
 *
 *     <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather
 *     ```json
 *     {"city": "Oslo"}
 *     ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
 *
 *     <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Oslo"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
 */
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { callsInJson, makeCall, splitOnce } from "./json-calls.ts";
import { scanToTagOutsideStrings, splitOutsideStrings } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";

const ALL_OPEN = "<｜tool▁calls▁begin｜>";
const ALL_CLOSE = "<｜tool▁calls▁end｜>";
const OPEN = "<｜tool▁call▁begin｜>";
const CLOSE = "<｜tool▁call▁end｜>";
const SEPARATOR = "<｜tool▁sep｜>";

export const deepseek: ToolFormat = {
  isIn: (source) => source.includes(OPEN) || source.includes(ALL_OPEN),
  markup: [ALL_OPEN, ALL_CLOSE, OPEN, CLOSE, SEPARATOR],
  forced: { ...plainForced, open: ALL_OPEN },
  grammar: (w) => {
    const one = w.perTool((tool) => {
      const fenced = `${w.text(`function${SEPARATOR}${tool.name}\n\`\`\`json\n`)} ${w.args(tool)} ${w.text("\n```")}`;
      const plain = `${w.text(tool.name + SEPARATOR)} ${w.ws} ${w.args(tool)}`;
      return `${w.text(OPEN)} (${fenced} | ${plain}) ${w.ws} ${w.text(CLOSE)}`;
    });
    return [{ opens: [ALL_OPEN], rest: `${w.ws} ${w.many(one, w.ws)} ${w.ws} ${w.text(ALL_CLOSE)}` }];
  },
  makeParser: () =>
    makeTaggedParser({
      opens: [ALL_OPEN],
      closes: [ALL_CLOSE],
      makeScan: () => scanToTagOutsideStrings({ opens: [ALL_OPEN], closes: [ALL_CLOSE] }),
      callsIn,
      closings: ["\n```"],
    }),
};

function callsIn(body: string): CallEvent[] {
  if (body.trimStart().startsWith("{")) return callsInJson(body);
  const [before = "", ...parts] = splitOutsideStrings(body, OPEN);
  const calls = parts.map((part) => callIn(part.replace(/<｜tool▁call▁end｜>\s*$/, "")));
  return before.trim() === "" && calls.every((call) => call !== undefined) ? calls : [];
}

function callIn(text: string): CallEvent | undefined {
  const [head = "", rest] = splitOnce(text, SEPARATOR);
  if (rest === undefined) return undefined;
  const fenced = /^([^\n]+)\n```(?:json)?\n([^]*?)\n?```$/.exec(rest.trim());
  return fenced ? makeCall(fenced[1]!.trim(), fenced[2]) : makeCall(head.trim(), rest); // the group always matches
}
