/** `POST /v1/completions`, row by row. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { AppError } from "../../src/base/errors.ts";
import type { GenerateRequest, InferenceEvent } from "../../src/runtime/requests/runtime.ts";
import { DONE, hello, play } from "./fakes.ts";
import { framesOf, makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());
beforeEach(() => void (harness.runtime.script = hello));

const post = (fields: object): Promise<Response> =>
  harness.post("/v1/completions", { model: "m", prompt: "Once", ...fields });
const json = async (response: Response): Promise<any> => response.json();
const choiceOf = async (fields: object): Promise<unknown> => (await json(await post(fields))).choices[0];

async function asked(fields: object): Promise<GenerateRequest> {
  expect((await post(fields)).status).toBe(200);
  return harness.runtime.requests.at(-1) as GenerateRequest;
}

describe("reply", () => {
  test("stream absent: one text_completion", async () => {
    expect(await json(await post({}))).toEqual({
      id: expect.stringMatching(/^cmpl-[0-9a-f]{32}$/),
      object: "text_completion",
      created: expect.any(Number),
      model: "m",
      system_fingerprint: "fp_hearth",
      choices: [{ text: "Hello", index: 0, logprobs: null, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5, prompt_tokens_details: { cached_tokens: 1 } },
      timings: expect.objectContaining({ predicted_n: 2 }),
    });
  });

  test("stream true: chunks, the reason in the last, counts if requested, and [DONE]", async () => {
    const frames = await framesOf(await post({ stream: true, stream_options: { include_usage: true } }));
    expect(frames.map((frame) => frame.choices?.map((choice: any) => [choice.text, choice.finish_reason]))).toEqual([
      [["He", null]],
      [["llo", null]],
      [["", "stop"]],
      [],
      undefined,
    ]);
    expect(frames.at(-2).usage).toEqual({
      prompt_tokens: 3,
      completion_tokens: 2,
      total_tokens: 5,
      prompt_tokens_details: { cached_tokens: 1 },
    });
    expect(frames.at(-1)).toBe("[DONE]");
    expect(await framesOf(await post({ stream: true }))).toHaveLength(4);
  });

  test("thinking is left out", async () => {
    harness.runtime.script = play([{ kind: "thinking", text: "hm" }, { kind: "text", text: "yes" }, DONE]);
    expect(await choiceOf({})).toMatchObject({ text: "yes" });
    expect(await framesOf(await post({ stream: true }))).toHaveLength(3);
  });

  test("echo: the prompt comes first, once", async () => {
    expect(await choiceOf({ echo: true })).toMatchObject({ text: "OnceHello" });
    const texts = async () =>
      (await framesOf(await post({ echo: true, stream: true }))).flatMap((frame) => frame.choices?.[0].text ?? []);
    expect(await texts()).toEqual(["OnceHe", "llo", ""]);
    harness.runtime.script = play([DONE]);
    expect(await texts()).toEqual(["Once"]);
  });

  test("logprobs: tokens, their alternatives, and their offsets in the text", async () => {
    const chosen = (token: string, logprob: number) => ({ id: 1, token, bytes: [], logprob });
    const text = (token: string): InferenceEvent => ({
      kind: "text",
      text: token,
      logprobs: [{ ...chosen(token, -0.5), top: [chosen(token, -0.5), chosen("x", -1)] }],
    });
    harness.runtime.script = play([text("He"), text("llo"), DONE]);
    const tops = [
      { He: -0.5, x: -1 },
      { llo: -0.5, x: -1 },
    ];
    expect(await choiceOf({ logprobs: 2, echo: true })).toMatchObject({
      logprobs: { tokens: ["He", "llo"], token_logprobs: [-0.5, -0.5], top_logprobs: tops, text_offset: [4, 6] },
    });
    const frames = await framesOf(await post({ logprobs: 2, echo: true, stream: true }));
    expect(frames.slice(0, 3).map((frame) => frame.choices[0].logprobs)).toEqual([
      { tokens: ["He"], token_logprobs: [-0.5], top_logprobs: [tops[0]], text_offset: [4] },
      { tokens: ["llo"], token_logprobs: [-0.5], top_logprobs: [tops[1]], text_offset: [6] },
      null,
    ]);
  });

  test("an empty prompt loads the model, and unloads it with keep_alive 0", async () => {
    expect(await choiceOf({ prompt: "" })).toMatchObject({ text: "", finish_reason: "load" });
    expect(await choiceOf({ prompt: "", keep_alive: 0 })).toMatchObject({ finish_reason: "unload" });
  });

  test("an error after the first chunk: an error frame, and no [DONE]", async () => {
    harness.runtime.script = async function* () {
      yield { kind: "text", text: "a" };
      throw new AppError("runner", "gone");
    };
    const frames = await framesOf(await post({ stream: true }));
    expect(frames.slice(1)).toEqual([{ error: { message: "gone", type: "api_error", param: null, code: null } }]);
  });
});

describe("request", () => {
  test.each([
    [{}, { prompt: "Once", raw: false, options: {} }],
    [{ prompt: ["Twice"] }, { prompt: "Twice" }],
    [{ suffix: "end" }, { suffix: "end" }],
    [{ max_tokens: 5, stop: ["\n"], temperature: 0 }, { options: { num_predict: 5, stop: ["\n"], temperature: 0 } }],
    [{ logprobs: 0 }, { logprobs: 0 }],
    [{ keep_alive: "1m" }, { keepAliveMs: 60_000 }],
    [{ n: 1, best_of: 1 }, {}],
    [{ n: 2, best_of: 2 }, {}],
    [{ prompt: [5, 7] }, { prompt: "", raw: true, context: [5, 7] }],
    [{ prompt: [[5, 7]] }, { prompt: "", raw: true, context: [5, 7] }],
  ])("%j reaches the runtime as %j", async (fields, wanted) => {
    expect(await asked(fields)).toMatchObject(wanted);
  });

  test.each([
    [{ prompt: ["a", 7] }, "prompt[1]: expected a text or ids of tokens, got 7"],
    [{ prompt: [] }, "prompt: expected a text, ids of tokens, or a list of these, got an array"],
    [{ prompt: [1.5] }, "prompt: expected a text or ids of tokens, got an array"],
    [{ prompt: 7 }, "prompt: expected a text or ids of tokens, got 7"],
    [{ prompt: [1], suffix: "s" }, "suffix: expected a prompt as text, got ids"],
    [{ n: 17 }, "n: expected 1 to 16 choices, got 17"],
    [
      { n: 16, prompt: Array(5).fill("a") },
      "prompt: expected at most 64 answers to a request, got 5 prompts with 16 choices each",
    ],
    [{ best_of: 2 }, "best_of: expected the same number as n: all choices are returned, got 2"],
    [{ logprobs: 21 }, "logprobs must be between 0 and 20, got 21"],
    [{ stop: [1] }, "invalid type for 'stop' field: expected text or texts, got number"],
    [{ model: "" }, "model is required"],
  ])("%j: 400 %s", async (fields, message) => {
    const response = await post(fields);
    expect([response.status, await json(response)]).toEqual([
      400,
      { error: { message, type: "invalid_request_error", param: null, code: null } },
    ]);
  });
});
