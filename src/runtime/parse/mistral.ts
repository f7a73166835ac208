/**
 * Calls as Mistral models write them: a list behind a tag, or, since 2025, each call behind its own.
 *
 *     [TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Oslo"}}]
 *     [TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}
 *     [TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{"city": "Oslo"}
 */
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { callsInJson, makeCall } from "./json-calls.ts";
import { scanBalanced } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";

const OPEN = "[TOOL_CALLS]";

export const mistral: ToolFormat = {
  isIn: (source) => source.includes(OPEN),
  markup: [OPEN, "[ARGS]", "[CALL_ID]"],
  forced: { ...plainForced, open: `${OPEN} [` },
  makeParser: () => makeTaggedParser({ opens: [OPEN], closes: [], makeScan: () => scanBalanced({ isStart }), callsIn }),
};

/** A list begins the body; after a name only an object does. */
const isStart = (body: string, at: number): boolean =>
  body[at] === "{" || (body[at] === "[" && body.slice(0, at).trim() === "");

function callsIn(body: string): CallEvent[] {
  if (/^\s*[[{]/.test(body)) return callsInJson(body);
  const found = /^\s*([^\s[{]+)\s*(?:\[CALL_ID\][^[]*)?(?:\[ARGS\])?\s*(\{[^]*)$/.exec(body);
  const call = found ? makeCall(found[1], found[2]) : undefined;
  return call ? [call] : [];
}
