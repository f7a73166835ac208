/** `timings` and `prompt_progress` in the OpenAI API, as llama-server has them. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { ChatRequest, InferenceEvent } from "../../src/runtime/requests/runtime.ts";
import { DONE, hello, play } from "./fakes.ts";
import { framesOf, makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());
beforeEach(() => void (harness.runtime.script = hello));

const COUNTS = { promptEvalCount: 3, promptCachedCount: 1 };
const READING: InferenceEvent[] = [
  { kind: "progress", ...COUNTS, processed: 1, promptEvalNs: 0 },
  { kind: "progress", ...COUNTS, processed: 3, promptEvalNs: 2_000_000 },
  { kind: "prompt", ...COUNTS, promptEvalNs: 2_000_000 },
];
const SAID: InferenceEvent[] = [{ kind: "text", text: "He" }, { kind: "text", text: "llo" }, DONE];

/** As the statistics of `DONE` have it. */
const TIMINGS = {
  cache_n: 1,
  prompt_n: 2,
  prompt_ms: 2,
  prompt_per_token_ms: 1,
  prompt_per_second: 1000,
  predicted_n: 2,
  predicted_ms: 1.5,
  predicted_per_token_ms: 0.75,
  predicted_per_second: 2000 / 1.5,
};
const PROGRESS = [
  { total: 3, cache: 1, processed: 1, time_ms: 0 },
  { total: 3, cache: 1, processed: 3, time_ms: 2 },
];

const asked = () => (harness.runtime.requests.at(-1) as ChatRequest).reportsProgress;

for (const [path, input] of [
  ["/v1/chat/completions", { messages: [{ role: "user", content: "hi" }] }],
  ["/v1/completions", { prompt: "hi" }],
] as const) {
  const post = (fields: object): Promise<Response> => harness.post(path, { model: "m", ...input, ...fields });
  const stream = async (fields: object): Promise<any[]> =>
    (await framesOf(await post({ stream: true, ...fields }))).slice(0, -1);

  test(`${path}: the end of an answer has its timings, whole and streamed`, async () => {
    expect(await (await post({})).json()).toMatchObject({ timings: TIMINGS });
    for (const usage of [false, true]) {
      const frames = await stream({ stream_options: { include_usage: usage } });
      const at = frames.flatMap(({ timings }, i) => (timings ? [i] : []));
      expect([at, frames.at(-1).timings]).toEqual([[frames.length - 1], TIMINGS]);
    }
    expect(asked()).toBeUndefined();
  });

  test(`${path}: an answer of several choices has no timings`, async () => {
    expect(await (await post({ n: 2 })).json()).not.toHaveProperty("timings");
    for (const frame of await stream({ n: 2, stream_options: { include_usage: true } }))
      expect(frame).not.toHaveProperty("timings");
  });

  test(`${path}: return_progress streams the progress of the prompt`, async () => {
    harness.runtime.script = play([...READING, ...SAID]);
    const frames = await stream({ return_progress: true });
    expect(asked()).toBe(true);
    expect(frames.map((frame) => frame.prompt_progress)).toEqual([...PROGRESS, undefined, undefined, undefined]);
    const [choice] = frames[0].choices;
    expect(choice).toMatchObject({ index: 0, finish_reason: null });
    if (path === "/v1/completions") expect(choice.text).toBe("");
    else {
      expect(choice.delta).toEqual({ role: "assistant", content: null });
      expect(frames.slice(1).map((frame) => frame.choices[0].delta.role)).toEqual(Array(4).fill(undefined));
    }
    expect(frames.filter(({ timings }) => timings)).toHaveLength(1);
    expect(await (await post({ return_progress: true })).json()).toMatchObject({ timings: TIMINGS });
    expect(asked()).toBeUndefined(); // a whole answer has no place for it
  });

  test(`${path}: timings_per_token adds the timings so far to every piece`, async () => {
    harness.runtime.script = play([...READING.slice(-1), ...SAID]);
    const frames = await stream({ timings_per_token: true });
    expect(frames.map(({ timings }) => [timings.prompt_n, timings.prompt_ms, timings.predicted_n])).toEqual([
      [2, 2, 1],
      [2, 2, 2],
      [2, 2, 2],
    ]);
    expect(frames.at(-1).timings).toEqual(TIMINGS);
    expect(asked()).toBeUndefined();
  });
}
