/** `POST /v1/embeddings`, row by row. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { EmbedRequest } from "../../src/runtime/requests/runtime.ts";
import { AppError } from "../../src/base/errors.ts";
import { threeValues } from "./fakes.ts";
import { makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());

const post = (fields: object): Promise<Response> => harness.post("/v1/embeddings", { model: "m", ...fields });
const json = async (response: Response): Promise<any> => response.json();

async function asked(fields: object): Promise<EmbedRequest> {
  expect((await post(fields)).status).toBe(200);
  return harness.runtime.embedRequests.at(-1)!;
}

describe("reply", () => {
  test("a list with one embedding and index per input, and the token counts", async () => {
    expect(await json(await post({ input: ["a", "bcd"] }))).toEqual({
      object: "list",
      data: [
        { object: "embedding", embedding: [1, 0.33333334, -0.5], index: 0 }, // the shortest digits of float32
        { object: "embedding", embedding: [3, 0.33333334, -0.5], index: 1 },
      ],
      model: "m",
      usage: { prompt_tokens: 4, total_tokens: 4 },
    });
  });

  test("encoding_format base64: the bytes of float32, low byte first", async () => {
    const { data } = await json(await post({ input: "ab", encoding_format: "BASE64" })); // in any case
    const bytes = Buffer.from(data[0].embedding, "base64");
    expect([0, 4, 8].map((at) => bytes.readFloatLE(at))).toEqual([2, Math.fround(1 / 3), -0.5]);
    expect(bytes.length).toBe(12);
  });
});

describe("request", () => {
  test.each([
    [{ input: "" }, { inputs: [""] }],
    [{ input: ["a", ""] }, { inputs: ["a", ""] }],
    [{ input: "a", dimensions: 2 }, { dimensions: 2 }],
    [
      { input: "a", keep_alive: "1m", truncate: false },
      { keepAliveMs: 60_000, truncate: false },
    ],
    [{ input: "a", options: { num_ctx: 64 } }, { options: { num_ctx: 64 } }],
    [{ input: "a", user: "u", encoding_format: "" }, { inputs: ["a"] }],
  ])("%j reaches the runtime as %j", async (fields, wanted) => {
    expect(await asked(fields)).toMatchObject(wanted);
  });

  const TOKEN_IDS =
    "invalid input type: expected texts, got ids of tokens, which belong to another model's vocabulary " +
    "(in LangChain set check_embedding_ctx_length=False)";
  test.each([
    [{}, "invalid input: expected a text, or an array of texts"],
    [{ input: null }, "invalid input: expected a text, or an array of texts"],
    [{ input: [] }, "invalid input: expected a text, or an array of texts"],
    [{ input: [1, 2] }, TOKEN_IDS],
    [{ input: [[1, 2], [3]] }, TOKEN_IDS],
    [{ input: [null] }, "invalid input type: input[0]: expected a text, got null"],
    [{ input: ["a", [1]] }, "invalid input type: input[1]: expected a text, got an array"],
    [{ input: {} }, "invalid input type: input[0]: expected a text, got object"],
    [{ input: "a", dimensions: 0 }, "dimensions: expected 1 or more, got 0"],
    [
      { input: "a", encoding_format: "hex" },
      "Invalid value for 'encoding_format' = hex. Supported values: ['float', 'base64'].",
    ],
    [{ input: "a", model: "" }, "model is required"],
  ])("%j: 400 %s", async (fields, message) => {
    const response = await post(fields);
    expect([response.status, await json(response)]).toEqual([
      400,
      { error: { message, type: "invalid_request_error", param: null, code: null } },
    ]);
  });

  test("404 for a missing model", async () => {
    expect((await post({ model: "nope", input: "a" })).status).toBe(404);
  });

  test("an error of the model keeps its status and message", async () => {
    harness.runtime.embedding = async () => {
      throw new AppError("bad_request", "the input length exceeds the context length");
    };
    const response = await post({ input: "a" });
    harness.runtime.embedding = threeValues;
    expect([response.status, (await json(response)).error.message]).toEqual([
      400,
      "the input length exceeds the context length",
    ]);
  });
});

test("a client that hangs up stops the embedding", async () => {
  const { url } = harness.listen();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  harness.runtime.embedding = async ({ signal }) => {
    signal.addEventListener("abort", () => stop());
    begin();
    await stopped;
    throw new AppError("cancelled", "request canceled");
  };
  const gone = new AbortController();
  const body = JSON.stringify({ model: "m", input: "a" });
  fetch(`${url}/v1/embeddings`, { method: "POST", body, signal: gone.signal }).catch(() => {});
  await begun;
  gone.abort();
  await stopped;
  harness.runtime.embedding = threeValues;
});
