/** `POST /infill` and `/slots`, as llama-server answers them. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { GenerateRequest, InferenceEvent } from "../../src/runtime/requests/runtime.ts";
import { DONE, hello, play } from "./fakes.ts";
import { framesOf, makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());
beforeEach(() => void (harness.runtime.script = hello));

const post = (body: object): Promise<Response> => harness.post("/infill", { model: "m", ...body });
const asked = (): GenerateRequest => harness.runtime.requests.at(-1) as GenerateRequest;
const LAST = {
  index: 0,
  model: "m",
  stop: true,
  stop_type: "eos",
  stopping_word: "",
  tokens_predicted: 2,
  tokens_evaluated: 3,
  truncated: false,
  timings: expect.objectContaining({ prompt_n: 2, predicted_n: 2 }),
};

test("the texts, other files and settings reach the model, and the answer has the fields of llama-server", async () => {
  const extra = [{ filename: "a.py", text: "def a(): pass" }, { text: "copied" }];
  const texts = { input_prefix: "x = 1\n", prompt: "y = ", input_suffix: "\nz = 3", input_extra: extra };
  const response = await post({ ...texts, n_predict: 9, top_k: 4, stop: ["\n"] });
  expect(await response.json()).toMatchObject({ ...LAST, content: "Hello", has_new_line: false });
  expect(asked()).toMatchObject({
    prompt: "x = 1\ny = ",
    suffix: "\nz = 3",
    fill: [
      { name: "a.py", text: "def a(): pass" },
      { name: "tmp", text: "copied" },
    ],
    options: { num_predict: 9, top_k: 4, stop: ["\n"] },
  });
  await post({ input_prefix: "x" });
  expect(asked()).toMatchObject({ prompt: "x", suffix: "", fill: [] });
});

test("a stream ends with the complete object, without [DONE]", async () => {
  const frames = await framesOf(await post({ input_prefix: "x", stream: true }));
  expect(frames).toEqual([
    { index: 0, content: "He", tokens: [], stop: false, id_slot: -1, tokens_predicted: 1, tokens_evaluated: 0 },
    { index: 0, content: "llo", tokens: [], stop: false, id_slot: -1, tokens_predicted: 2, tokens_evaluated: 0 },
    expect.objectContaining({ ...LAST, content: "" }),
  ]);
});

test("the answer has its stop reason and only the requested fields", async () => {
  const fields = ["content", "stop_type", "stopping_word", "timings/prompt_n", "nope/x"];
  const ended = async (done: object): Promise<object> => {
    harness.runtime.script = play([{ kind: "text", text: "a" }, { ...DONE, ...done } as InferenceEvent]);
    return (await post({ input_prefix: "x", response_fields: fields })).json() as Promise<object>;
  };
  const answer = { content: "a", "timings/prompt_n": 2 };
  expect(await ended({ reason: "length" })).toEqual({ ...answer, stop_type: "limit", stopping_word: "" });
  expect(await ended({ stopSequence: "b" })).toEqual({ ...answer, stop_type: "word", stopping_word: "b" });
});

test("t_max_predict_ms ends an answer at the end of a line", async () => {
  const words = ["a", " b\n", "c", "\n", "d"].map((text): InferenceEvent => ({ kind: "text", text }));
  harness.runtime.script = play([...words, DONE], 30);
  const late = (await (await post({ input_prefix: "x", t_max_predict_ms: 1 })).json()) as object;
  expect(late).toMatchObject({ content: "a b\n", stop_type: "limit", has_new_line: true });
  expect(harness.runtime.running()).toBe(0);
  expect(await (await post({ input_prefix: "x", t_max_predict_ms: 60_000 })).json()).toMatchObject({
    stop_type: "eos",
  });
});

test("bad requests are refused", async () => {
  const failure = async (body: object) => {
    const response = await post(body);
    return [response.status, ((await response.json()) as { error: { message: string } }).error.message];
  };
  expect(await failure({ model: "nope" })).toEqual([404, "model 'nope' not found"]);
  expect(await failure({ input_extra: Array(257).fill({}) })).toEqual([
    400,
    "input_extra: expected at most 256 files, got 257",
  ]);
  expect((await failure({ input_extra: [7] }))[0]).toBe(400);
  expect((await failure({ input_prefix: 7 }))[0]).toBe(400);
});

test("/slots with fail_on_no_slot is 503 if no slot is free", async () => {
  harness.runtime.models = [];
  expect((await harness.call("GET", "/slots")).status).toBe(200);
  expect((await harness.call("GET", "/slots?fail_on_no_slot=1")).status).toBe(503);
});
