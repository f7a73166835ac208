/** Answers as they are read from what a runner says. */
import { expect, test } from "bun:test";
import type { Loaded } from "../../src/runtime/lease.ts";
import { respond } from "../../src/runtime/respond.ts";
import type { RunnerEvent } from "../../src/runtime/runner-client.ts";
import type { InferenceEvent } from "../../src/runtime/runtime.ts";
import { SAMPLING_DEFAULTS } from "../../src/sampling/options.ts";

const FACTS = {
  kind: "jinja",
  source: "<tool_call><function=",
  capabilities: { tools: true, thinking: false, insert: false },
  thinking: undefined,
  callTag: undefined,
} as const;
const STATISTICS = { promptEvalCount: 1, promptCachedCount: 0, promptEvalNs: 1, evalCount: 1, evalNs: 1 };

/** What kinds of events an answer gives that ends for a reason. */
function read(text: string, reason: "stop" | "length"): Set<InferenceEvent["kind"]> {
  const loaded = { startedNs: 0, loadNs: 0 } as Loaded; // no more of it is looked at
  const settings = { options: SAMPLING_DEFAULTS, shift: true };
  const tools = [{ type: "function", function: { name: "write" } }] as const;
  const phase = respond(
    loaded,
    { asked: { kind: "text", text: "", context: [] }, settings, wantsContext: false },
    { facts: FACTS, think: undefined, tools },
  );
  const events: RunnerEvent[] = [
    { kind: "prompt", id: 1, tokens: 1, cached: 0, end: "" },
    { kind: "text", id: 1, text },
    { kind: "done", id: 1, reason, statistics: STATISTICS, tokens: new Int32Array(0) },
  ];
  return new Set(events.flatMap((event) => phase.read(event)).map(({ kind }) => kind));
}

test("a call that an answer's length cuts is text, one that lacks its closing tag is a call", () => {
  const begun = "<tool_call>\n<function=write>\n<parameter=text>\nrm -rf /tmp";
  expect(read(begun, "length")).toEqual(new Set(["prompt", "text", "done"]));
  expect(read(`${begun}/a\n</parameter>\n</function>`, "stop")).toEqual(new Set(["prompt", "toolCall", "done"]));
});
