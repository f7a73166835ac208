import { afterAll, beforeAll, describe, test } from "bun:test";
import type { InferenceEvent } from "../../src/runtime/runtime.ts";
import { DONE, pause, type Script } from "../server/fakes.ts";
import { makeHarness, type Harness } from "../server/harness.ts";
import { CHECKS } from "./ollama-client.ts";

let harness: Harness;
let url: string;
beforeAll(async () => {
  harness = await makeHarness();
  ({ url } = harness.listen());
  harness.runtime.script = scripted;
});
afterAll(() => harness.close());

/** Answers as a model would: JSON on request, endlessly when asked for much, and no context in raw mode. */
const scripted: Script = async function* (request) {
  while ((request.options.num_predict ?? 0) > 1000) {
    await pause(5, request.signal);
    yield { kind: "text", text: "word " };
  }
  if (request.format) yield { kind: "text", text: '{"ok": true}' };
  else {
    yield { kind: "text", text: "Hello" };
    yield { kind: "text", text: "!" };
  }
  yield "raw" in request && request.raw ? withoutContext(DONE) : DONE;
};

function withoutContext(event: InferenceEvent): InferenceEvent {
  return event.kind === "done" && event.statistics
    ? { kind: "done", reason: event.reason, statistics: event.statistics }
    : event;
}

describe("the ollama npm client against the routes", () => {
  for (const [name, check] of Object.entries(CHECKS)) {
    test(name, () => check({ url, model: "m:latest" }));
  }
});
