/** Log-probabilities of prompts: `echo` with `logprobs` in completions, and vLLM's `prompt_logprobs`. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { GenerateRequest, InferenceEvent, PromptLogprob } from "../../src/runtime/requests/runtime.ts";
import { offsetsIn } from "../../src/server/openai/legacy-logprobs.ts";
import { DONE, hello, play, type Script } from "./fakes.ts";
import { framesOf, makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());
beforeEach(() => void (harness.runtime.script = hello));

const post = (fields: object, path = "/v1/completions"): Promise<Response> =>
  harness.post(path, { model: "m", ...(path.includes("chat") ? {} : { prompt: "Once" }), ...fields });
const json = async (response: Response): Promise<any> => response.json();

const bytesOf = (token: string): number[] => [...new TextEncoder().encode(token)];
const named = (id: number, token: string, logprob: number) => ({ id, token, bytes: bytesOf(token), logprob });
const BOS: PromptLogprob = { id: 1, token: "<s>", bytes: bytesOf("<s>"), top: [] };
const ON: PromptLogprob = { ...named(2, "On", -3), rank: 7, top: [named(9, "A", -0.5), named(8, "An", -1)] };
const CE: PromptLogprob = { ...named(3, "ce", -0.25), rank: 1, top: [named(3, "ce", -0.25), named(7, "\uFFFD", -2)] };
const said = (token: string): InferenceEvent => ({
  kind: "text",
  text: token,
  logprobs: [{ ...named(5, token, -0.5), top: [named(4, "x", -0.125), named(6, "x", -4)] }],
});
const PROMPT = { kind: "prompt", promptEvalCount: 3, promptCachedCount: 0, promptEvalNs: 1 } as const;

/** Tokens of the prompt only where they were requested, as an engine does. */
const measuring: Script = (request) =>
  play([
    ...(request.promptLogprobs === undefined
      ? []
      : ([
          { kind: "promptLogprobs", tokens: [BOS, ON] },
          { kind: "promptLogprobs", tokens: [CE] },
        ] as const)),
    PROMPT,
    said(" u"),
    said("p"),
    DONE,
  ])(request);

const WHOLE = {
  tokens: ["<s>", "On", "ce", " u", "p"],
  token_logprobs: [null, -3, -0.25, -0.5, -0.5],
  top_logprobs: [null, { A: -0.5, On: -3 }, { ce: -0.25 }, { x: -0.125, " u": -0.5 }, { x: -0.125, p: -0.5 }],
  text_offset: [0, 0, 2, 4, 6],
};

describe("echo with logprobs", () => {
  beforeEach(() => void (harness.runtime.script = measuring));

  test("the tokens of the prompt come first, in every choice, but only one choice measures them", async () => {
    const { choices } = await json(await post({ echo: true, logprobs: 1, n: 2, seed: 4 }));
    expect(choices.map(({ index, text }: any) => [index, text])).toEqual([
      [0, "Once up"],
      [1, "Once up"],
    ]);
    for (const { logprobs } of choices) expect(logprobs).toEqual(WHOLE);
    expect(choices[0]).not.toHaveProperty("prompt_logprobs");
    const [first, second] = harness.runtime.requests.slice(-2) as GenerateRequest[];
    const same = { prompt: "Once", raw: true, logprobs: 1, endLogprobs: true };
    expect([first, second]).toMatchObject([same, same]);
    expect([first!.promptLogprobs, second!.promptLogprobs]).toEqual([1, undefined]);
  });

  test("a stream has them in the first chunk of each choice", async () => {
    const frames: any[] = await framesOf(await post({ echo: true, logprobs: 1, n: 2, stream: true }));
    for (const index of [0, 1]) {
      const choices = frames.flatMap((frame) => frame.choices ?? []).filter((choice) => choice.index === index);
      expect(choices.map(({ text }) => text)).toEqual(["Once u", "p", ""]);
      const lists = choices.map(({ logprobs }) => logprobs).filter((each) => each !== null);
      const joined = Object.keys(WHOLE).map((name) => [name, lists.flatMap((list) => list[name])]);
      expect(Object.fromEntries(joined)).toEqual(WHOLE);
      expect(lists[0].tokens).toHaveLength(4);
    }
  });

  test("without new tokens there are only those of the prompt, whole and streamed", async () => {
    harness.runtime.script = play([{ kind: "promptLogprobs", tokens: [BOS, ON, CE] }, PROMPT, DONE]);
    const alone = Object.fromEntries(Object.entries(WHOLE).map(([name, list]) => [name, list.slice(0, 3)]));
    const { choices } = await json(await post({ echo: true, logprobs: 1, max_tokens: 0 }));
    expect(choices).toMatchObject([{ text: "Once", logprobs: alone }]);
    const frames: any[] = await framesOf(await post({ echo: true, logprobs: 1, max_tokens: 0, stream: true }));
    expect(frames[0].choices).toEqual([{ text: "Once", index: 0, logprobs: alone, finish_reason: "stop" }]);
  });

  test("a token that ends the answer without text is kept", async () => {
    const end: InferenceEvent = { kind: "text", text: "", logprobs: [{ ...named(2, "</s>", -1), top: [] }] };
    harness.runtime.script = play([{ kind: "promptLogprobs", tokens: [BOS, ON, CE] }, PROMPT, end, DONE]);
    const { choices } = await json(await post({ echo: true, logprobs: 0, max_tokens: 1 }));
    expect(choices[0]).toMatchObject({ text: "Once", logprobs: { tokens: ["<s>", "On", "ce", "</s>"] } });
    const frames: any[] = await framesOf(await post({ echo: true, logprobs: 0, max_tokens: 1, stream: true }));
    expect(frames[0].choices[0].logprobs.tokens).toEqual(["<s>", "On", "ce", "</s>"]);
  });

  test("several prompts, texts or ids, have their own tokens", async () => {
    harness.runtime.script = (request) => {
      const token = "prompt" in request && request.prompt !== "" ? request.prompt : "ids";
      return play([{ kind: "promptLogprobs", tokens: [{ ...BOS, token, bytes: bytesOf(token) }] }, PROMPT, DONE])(
        request,
      );
    };
    const { choices } = await json(await post({ prompt: ["a", "b"], n: 2, echo: true, logprobs: 0, max_tokens: 0 }));
    expect(choices.map(({ logprobs }: any) => logprobs.tokens)).toEqual([["a"], ["a"], ["b"], ["b"]]);
    await post({ prompt: [5, 7], echo: true, logprobs: 0 });
    expect(harness.runtime.requests.at(-1)).toMatchObject({ raw: true, context: [5, 7], promptLogprobs: 0 });
  });
});

describe("prompt_logprobs", () => {
  const FIELD = [
    null,
    { 2: { logprob: -3, rank: 7, decoded_token: "On" }, 9: { logprob: -0.5, rank: 1, decoded_token: "A" } },
    { 3: { logprob: -0.25, rank: 1, decoded_token: "ce" } },
  ];

  test("completions have them in each choice, apart from echo and logprobs", async () => {
    harness.runtime.script = measuring;
    const { choices } = await json(await post({ prompt_logprobs: 1, n: 2 }));
    const choice = { text: " up", logprobs: null, prompt_logprobs: FIELD };
    expect(choices).toMatchObject([choice, choice]);
    expect(harness.runtime.requests.at(-2)).toMatchObject({ raw: true, promptLogprobs: 1 });
    const [both] = (await json(await post({ prompt_logprobs: 1, echo: true, logprobs: 2 }))).choices;
    expect(harness.runtime.requests.at(-1)).toMatchObject({ promptLogprobs: 2, logprobs: 2 });
    const { top_logprobs: tops } = both.logprobs;
    expect([both.prompt_logprobs, tops[1], tops[3]]).toEqual([
      FIELD,
      { A: -0.5, An: -1, On: -3 },
      { x: -0.125, " u": -0.5 },
    ]);
    const [fewer] = (await json(await post({ prompt_logprobs: 2, echo: true, logprobs: 1 }))).choices;
    expect(harness.runtime.requests.at(-1)).toMatchObject({ promptLogprobs: 2, logprobs: 1 });
    expect(fewer.logprobs).toEqual(WHOLE);
  });

  test("chats have them beside the choices, of the first choice alone", async () => {
    harness.runtime.script = measuring;
    const messages = [{ role: "user", content: "Once" }];
    const reply = await json(await post({ messages, prompt_logprobs: 1, n: 2 }, "/v1/chat/completions"));
    expect(reply.prompt_logprobs).toEqual(FIELD);
    expect(harness.runtime.requests.slice(-2).map(({ promptLogprobs }) => promptLogprobs)).toEqual([1, undefined]);
    expect(await json(await post({ messages }, "/v1/chat/completions"))).not.toHaveProperty("prompt_logprobs");
  });

  test.each([
    [{ prompt_logprobs: 21 }, "prompt_logprobs must be between 0 and 20, got 21"],
    [{ prompt_logprobs: -1 }, "prompt_logprobs must be between 0 and 20, got -1"],
    [{ prompt_logprobs: 1, stream: true }, "prompt_logprobs: expected no stream, which has no field for them"],
    [{ prompt_logprobs: 1, suffix: "s" }, "suffix: expected no log-probabilities of the prompt"],
    [{ echo: true, logprobs: 1, suffix: "s" }, "suffix: expected no log-probabilities of the prompt"],
    [
      { echo: true, logprobs: 19, prompt: ["a".repeat(150_000), Array<number>(60_000).fill(1)] },
      "log-probabilities of prompts: 210000 characters or ids with 19 alternatives each: expected at most 4000000 in " +
        "one request, got 4200000",
    ],
  ])("%#: 400", async (fields, message) => {
    const refused = await post(fields);
    expect([refused.status, (await json(refused)).error.message]).toEqual([400, message]);
  });
});

test.each([
  ["tokens in a row", "Hi there", ["Hi", " there"], [0, 2]],
  ["a token that begins the sequence has no length", "Hi", ["<s>", "Hi"], [0, 0]],
  ["neither has the space before a text", "to to", ["<s>", " to", " to"], [0, 0, 2]],
  ["a part of a character begins where the character does", "日本", [[0xe6, 0x97], [0xa5], "本"], [0, 0, 1]],
  ["characters beyond 16 bits count once", "🐟a", ["🐟", "a"], [0, 1]],
  ["a token that the tokenizer has changed", "Hi You", ["hi", " you", "!"], [0, 0, 0]],
  ["tokens after it are found again", "Hé, you", ["He", ",", " you"], [0, 2, 3]],
  ["media have no length", "a", [[], "a"], [0, 0]],
] as const)("offsets: %s", (_, text, tokens, wanted) => {
  const list = tokens.map((token) => ({ bytes: typeof token === "string" ? bytesOf(token) : [...token] }));
  expect(offsetsIn(text, list)).toEqual([...wanted]);
});
