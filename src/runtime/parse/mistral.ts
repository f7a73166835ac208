/**
 * Calls as Mistral models write them: a list after a tag, or, since 2025, each call after its own tag.
 *
 *     [TOOL_CALLS] [{"name": "get_weather", "arguments": {"city": "Oslo"}}]
 *     [TOOL_CALLS]get_weather[ARGS]{"city": "Oslo"}
 *     [TOOL_CALLS]get_weather[CALL_ID]a1b2c3d4e[ARGS]{"city": "Oslo"}
 */
import { listOf } from "./call-grammar.ts";
import { plainForced, type CallEvent, type ToolFormat } from "./format.ts";
import { callsInJson, makeCall } from "./json-calls.ts";
import { scanBalanced } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";

const OPEN = "[TOOL_CALLS]";

export const mistral: ToolFormat = {
  isIn: (source) => source.includes(OPEN),
  markup: [OPEN, "[ARGS]", "[CALL_ID]"],
  forced: { ...plainForced, open: `${OPEN} [` },
  grammar: (w) => {
    const id = `(${w.text("[CALL_ID]")} [a-zA-Z0-9]{9})?`;
    const named = w.perTool((tool) => `${w.text(tool.name)} (${id} ${w.text("[ARGS]")})? ${w.args(tool)}`);
    return [{ opens: [OPEN], rest: `${w.ws} (${listOf(w, w.json())} | ${named})` }];
  },
  makeParser: () =>
    makeTaggedParser({ opens: [OPEN], closes: [], makeScan: () => scanBalanced({ opens: [OPEN], isStart }), callsIn }),
};

/** A list begins the body; after a name only an object does. */
const isStart = (body: string, at: number): boolean =>
  body[at] === "{" || (body[at] === "[" && body.slice(0, at).trim() === "");

function callsIn(body: string): CallEvent[] {
  if (/^\s*[[{]/.test(body)) return callsInJson(body);
  const start = body.indexOf("{");
  const head = body.slice(0, Math.max(0, start)).trim();
  const name = head.split("[", 1)[0]!.trim(); // split returns at least one part
  const isMarked = /^(?:\[CALL_ID\][^[]*)?(?:\[ARGS\])?$/.test(head.slice(name.length).trim());
  const call = isMarked && !/\s/.test(name) ? makeCall(name, body.slice(start)) : undefined;
  return call ? [call] : [];
}
