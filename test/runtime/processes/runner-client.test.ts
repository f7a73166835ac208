import { expect, test } from "bun:test";
import type { FromRunner } from "../../../src/engine/runner/messages.ts";
import { connect } from "../../../src/runtime/processes/connect.ts";
import { RunnerClient } from "../../../src/runtime/processes/runner-client.ts";
import { SAMPLING_DEFAULTS } from "../../../src/engine/text/sampling/options.ts";

const load = {
  kind: "load",
  path: "/m",
  adapters: [],
  backend: "cpu",
  ctxLen: 8,
  slots: 1,
  chunk: 8,
  template: { go: undefined, prefersGo: undefined },
  threads: 0,
  precise: false,
  cacheDir: undefined,
  gpuLayers: undefined,
  gpuMemory: undefined,
} as const;
const info = { ctxLen: 8 } as Extract<FromRunner, { kind: "ready" }>["info"]; // no other fields are used
const facts = {} as Extract<FromRunner, { kind: "ready" }>["template"];

test("kvTokens counts prompt and answer tokens of running generations only", async () => {
  const opened = Promise.withResolvers<(message: FromRunner) => void>();
  const options = { loadTimeoutMs: Infinity };
  const { signal } = new AbortController();
  const connecting = connect(
    load,
    (receive) => {
      opened.resolve(receive);
      return { send() {}, kill() {}, exited: new Promise(() => {}) };
    },
    { options, signal },
  );
  const say = await opened.promise;
  say({ kind: "ready", info, template: facts });
  const runner = new RunnerClient(await connecting);
  const asked = { kind: "text", text: "hi", context: [] } as const;
  const events = [1, 2].map((id) => runner.generate({ id, asked, options: SAMPLING_DEFAULTS, shift: true }, signal));
  const first = events.map((each) => each.next());
  expect(runner.kvTokens).toBe(0);
  for (const id of [1, 2])
    say({ kind: "events", events: [{ kind: "prompt", id, tokens: 5, cached: 0, evalNs: 0, end: "" }] });
  say({ kind: "events", events: [{ kind: "text", id: 2, text: "a" }] });
  await Promise.all(first);
  expect(runner.kvTokens).toBe(11);
  await events[1]!.return();
  expect(runner.kvTokens).toBe(5);
});
