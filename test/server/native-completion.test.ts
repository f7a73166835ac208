/** llama-server's `POST /completion`, `/embedding` and `/reranking`. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { ChosenLogprob, GenerateRequest, InferenceEvent } from "../../src/runtime/requests/runtime.ts";
import { DONE, hello, play } from "./fakes.ts";
import { framesOf, makeHarness, type Harness } from "./harness.ts";
import { missing, recorded } from "./llama-shapes.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());
beforeEach(() => void (harness.runtime.script = hello));

const post = (body: object): Promise<Response> => harness.post("/completion", { model: "m", ...body });
const json = async (body: object): Promise<any> => (await post(body)).json();
/** The requests that a body becomes. */
async function asked(body: object): Promise<GenerateRequest[]> {
  const before = harness.runtime.requests.length;
  expect((await post(body)).status).toBe(200);
  return harness.runtime.requests.slice(before) as GenerateRequest[];
}

const token = (text: string, id: number, logprob: number) => ({
  id,
  token: text,
  bytes: [...Buffer.from(text)],
  logprob,
});
const chosen = (text: string, id: number): ChosenLogprob => ({
  ...token(text, id, -0.5),
  top: [token(text, id, -0.5), token("x", 9, -Infinity)],
});
const TOLD: InferenceEvent[] = [
  { kind: "prompt", promptEvalCount: 3, promptCachedCount: 1, promptEvalNs: 2e6 },
  { kind: "text", text: "He", logprobs: [chosen("H", 4), chosen("e", 5)] },
  { kind: "text", text: "y\n", logprobs: [chosen("y\n", 6)] },
  DONE,
];

test("a prompt is continued without a template: a text, token ids, both, or several prompts", async () => {
  expect(await asked({ prompt: "Hello" })).toMatchObject([{ prompt: "Hello", raw: true }]);
  expect(await asked({ prompt: [5, 6] })).toMatchObject([{ prompt: "", raw: true, context: [5, 6] }]);
  const mixed = { prompt: "", raw: true, context: [97, 98, 7] }; // the fake's ids are bytes
  expect(await asked({ prompt: ["ab", 7] })).toMatchObject([mixed]);
  expect(await asked({ prompt: { prompt_string: "a" } })).toMatchObject([{ prompt: "a" }]);
  const several = await asked({ prompt: ["a", [1, 2]], n_cmpl: 2, seed: 3 });
  expect(several.map(({ prompt, context, options }) => [prompt, context, options.seed]).sort()).toEqual([
    ["", [1, 2], 3],
    ["", [1, 2], 4],
    ["a", undefined, 3],
    ["a", undefined, 4],
  ]);
  const answers = await json({ prompt: ["a", "b"] });
  expect(answers).toMatchObject([
    { index: 0, content: "Hello", prompt: "a" },
    { index: 1, content: "Hello", prompt: "b" },
  ]);
});

test("settings have the names of llama-server, in the request and in the answer", async () => {
  const settings = { temperature: 0.5, top_k: 3, mirostat: 2, mirostat_tau: 4, repeat_last_n: 8, n_predict: 9 };
  const body = { prompt: "x", ...settings, n_keep: 2, stop: ["a"], cache_prompt: true, id_slot: 3 };
  const biased = {
    ...body,
    logit_bias: [
      [5, 1.5],
      [7, false],
    ],
  };
  const { n_predict, ...same } = settings;
  const [request] = await asked(biased);
  const wanted = { ...same, num_predict: n_predict, num_keep: 2, stop: ["a"], logit_bias: { 5: 1.5, 7: -100 } };
  expect(request).toMatchObject({ options: wanted });
  const { generation_settings } = await json(biased);
  const echoed = { ...settings, max_tokens: 9, n_keep: 2, stop: ["a"] };
  expect(generation_settings).toMatchObject({
    ...echoed,
    logit_bias: [
      { bias: 1.5, token: 5 },
      { bias: -100, token: 7 },
    ],
  });
  expect(await asked({ prompt: "x", grammar: 'root ::= "a"' })).toMatchObject([{ grammar: { kind: "gbnf" } }]);
  expect(await asked({ prompt: "x", json_schema: {}, grammar: "" })).toMatchObject([{ format: {} }]);
});

test("tokens and their probabilities are in the answer if requested", async () => {
  harness.runtime.script = play(TOLD);
  expect(await json({ prompt: "x" })).toMatchObject({ content: "Hey\n", tokens: [], has_new_line: true });
  const answer = await json({ prompt: "x", n_probs: 2, return_tokens: true });
  expect(answer.tokens).toEqual([4, 5, 6]);
  expect(answer.completion_probabilities[0]).toEqual({
    ...token("H", 4, -0.5),
    top_logprobs: [token("H", 4, -0.5), token("x", 9, -Number.MAX_VALUE)],
  });
  expect(missing(recorded.probs, answer)).toEqual([]);
  const linear = await json({ prompt: "x", n_probs: 2, post_sampling_probs: true });
  expect(missing(recorded.post_probs, linear)).toEqual([]);
  expect(linear.completion_probabilities[0].top_probs.map(({ prob }: any) => prob)).toEqual([Math.exp(-0.5), 0]);
  expect(harness.runtime.requests.at(-1)).toMatchObject({ logprobs: 2 });
  expect((await asked({ prompt: "x" }))[0]).not.toHaveProperty("logprobs");
});

test("a stream has a frame for each piece of text, and ends with the fields of the whole answer", async () => {
  const progress: InferenceEvent = {
    kind: "progress",
    promptEvalCount: 3,
    promptCachedCount: 1,
    processed: 3,
    promptEvalNs: 1e6,
  };
  harness.runtime.script = play([progress, ...TOLD]);
  const wanted = { stream: true, return_progress: true, timings_per_token: true, n_probs: 2 };
  const frames = await framesOf(await post({ prompt: "x", ...wanted }));
  expect(frames.map(({ content, stop, tokens_predicted: count }) => [content, stop, count])).toEqual([
    ["", false, 0],
    ["He", false, 2],
    ["y\n", false, 3],
    ["", true, 2], // the count of the statistics
  ]);
  const theirs = recorded.stream;
  const kinds = [theirs[0], theirs.find(({ content }) => content !== ""), theirs.find(({ content }) => content !== "")];
  expect([...kinds, theirs.at(-1)].flatMap((each, i) => missing(each, frames[i]))).toEqual([]);
  expect(harness.runtime.requests.at(-1)).toMatchObject({ reportsProgress: true });
  const several = await framesOf(await post({ prompt: ["a", "b"], stream: true }));
  expect(new Set(several.map(({ index }) => index))).toEqual(new Set([0, 1]));
});

test("bad requests have errors of llama-server's types", async () => {
  const failure = async (body: object) => {
    const response = await post(body);
    const { error } = (await response.json()) as typeof recorded.error;
    return [response.status, error.type, error.message];
  };
  const wrong = "invalid_request_error";
  expect(await failure({})).toEqual([400, wrong, expect.stringContaining("prompt: expected a text, ids of tokens")]);
  expect(await failure({ prompt: [] })).toEqual([400, wrong, expect.stringContaining("prompt: expected")]);
  expect(await failure({ prompt: [[1, -2]] })).toEqual([400, wrong, expect.stringContaining("prompt[0]: expected")]);
  expect(await failure({ prompt: { prompt_string: "a", multimodal_data: ["aa"] } })).toEqual([
    400,
    wrong,
    "prompt.multimodal_data: expected no images: /v1/chat/completions takes them",
  ]);
  expect(await failure({ prompt: "x", n_probs: 21 })).toEqual([400, wrong, "n_probs: expected 0 to 20, got 21"]);
  expect(await failure({ prompt: "x", logit_bias: [5] })).toEqual([
    400,
    wrong,
    expect.stringContaining("logit_bias[0]"),
  ]);
  expect(await failure({ prompt: "x", n_cmpl: 17 })).toEqual([400, wrong, "n: expected 1 to 16 choices, got 17"]);
  expect(await failure({ model: "nope", prompt: "x" })).toEqual([404, "not_found_error", "model 'nope' not found"]);
});

test("embeddings and ranks have the fields of llama-server", async () => {
  const embedded = await (await harness.post("/embedding", { model: "m", content: ["hi", "you"] })).json();
  expect(missing(recorded.embedding, embedded)).toEqual([]);
  expect(embedded).toMatchObject([{ index: 0, embedding: [[2, expect.any(Number), -0.5]] }, { index: 1 }]);
  const refused = await harness.post("/embeddings", { model: "m", input: "hi", embd_normalize: 0 });
  expect(refused.status).toBe(400);
  const asking = { model: "m", query: "q", top_n: 1 };
  const ranked: any = await (await harness.post("/reranking", { ...asking, documents: ["a", "bc"] })).json();
  expect(missing(recorded.rerank, ranked)).toEqual([]);
  expect(ranked.results).toHaveLength(1);
  const list: any = await (await harness.post("/rerank", { ...asking, texts: ["a", "bc"], return_text: true })).json();
  expect(missing(recorded.rerank_tei, list)).toEqual([]);
  expect(list[0].score).toBe(ranked.results[0].relevance_score);
});
