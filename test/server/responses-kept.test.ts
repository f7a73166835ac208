/** Responses that are kept: continued, read, listed and deleted by id, and only by the owner of their key. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { chmod, rm } from "node:fs/promises";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ChatRequest, InferenceEvent } from "../../src/runtime/requests/runtime.ts";
import { DONE, hello, play } from "./fakes.ts";
import { makeHarness, type Harness } from "./harness.ts";
import { ResponseShape } from "./response-shapes.ts";

const KEYS = ["alice:a1", "alice:a2", "bob:b1", "c1", "d1"];
const PNG =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

let harness: Harness;
let url: string;
beforeAll(async () => {
  harness = await makeHarness({ apiKeys: KEYS });
  ({ url } = harness.listen());
});
afterAll(() => harness.close());
beforeEach(() => void (harness.runtime.script = hello));

const clientOf = (key: string, base = url): OpenAI => new OpenAI({ baseURL: `${base}/v1`, apiKey: key, maxRetries: 0 });
const alice = (): OpenAI => clientOf("a1");
const asked = (): ChatRequest => harness.runtime.requests.at(-1) as ChatRequest;
const said = () => asked().messages.map(({ role, content }) => [role, content]);
const failed = async (promise: Promise<unknown>) => {
  const error: unknown = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof OpenAI.APIError)) throw new Error("expected an error of the API");
  return [error.status, error.error] as const;
};
const noPrevious = (id: string) => [
  400,
  {
    message: `Previous response with id '${id}' not found.`,
    type: "invalid_request_error",
    param: "previous_response_id",
    code: "previous_response_not_found",
  },
];
const notFound = (id: string) => [
  404,
  { message: `Response with id '${id}' not found.`, type: "invalid_request_error", param: null, code: null },
];

describe("a conversation by ids", () => {
  test("continues from the last response, whole and streamed, without its instructions", async () => {
    const { responses } = alice();
    const first = await responses.create({ model: "m", instructions: "Be kind.", input: "one" });
    expect(first).toMatchObject({ store: true, previous_response_id: null });
    const stream = responses.stream({ model: "m", input: "two", previous_response_id: first.id });
    const second = await stream.finalResponse();
    expect(second).toMatchObject({ store: true, previous_response_id: first.id });
    const third = await responses.create({ model: "m", input: "three", previous_response_id: second.id });
    const history = [
      ["user", "one"],
      ["assistant", "Hello"],
      ["user", "two"],
      ["assistant", "Hello"],
      ["user", "three"],
    ];
    expect(said()).toEqual(history);
    // a branch: what came after it is not in it
    await responses.create({ model: "m", input: "other", previous_response_id: first.id, store: false });
    expect(said()).toEqual([...history.slice(0, 2), ["user", "other"]]);
    expect(await responses.retrieve(third.id)).toMatchObject({ ...third });
    const raw = await harness.call("GET", `/v1/responses/${third.id}`, undefined, bearer("a1"));
    expect(ResponseShape.parse(await raw.json()).id).toBe(third.id);
  });

  test("keeps reasoning, calls with their results, and images", async () => {
    const { responses } = alice();
    const call: InferenceEvent = { kind: "toolCall", call: { id: "c1", function: { name: "f", arguments: { a: 1 } } } };
    harness.runtime.script = play([{ kind: "thinking", text: "hm" }, call, DONE]);
    const image = { type: "input_image", image_url: PNG, detail: "auto" } as const;
    const tools = [{ type: "function", name: "f", parameters: { type: "object" }, strict: false }] as const;
    const content = [{ type: "input_text" as const, text: "what is it?" }, image];
    const first = await responses.create({ model: "m", tools: [...tools], input: [{ role: "user", content }] });
    harness.runtime.script = hello;
    const output = [{ type: "function_call_output" as const, call_id: "c1", output: "a cat" }];
    const second = await responses.create({ model: "m", input: output, previous_response_id: first.id });
    await responses.create({ model: "m", input: "sure?", previous_response_id: second.id });
    expect(asked().messages).toMatchObject([
      { role: "user", content: expect.stringContaining("what is it?"), images: [expect.anything()] },
      { role: "assistant", thinking: "hm", tool_calls: [{ id: "c1", function: { name: "f", arguments: { a: 1 } } }] },
      { role: "tool", content: "a cat", tool_call_id: "c1", tool_name: "f" },
      { role: "assistant", content: "Hello" },
      { role: "user", content: "sure?" },
    ]);
  });

  test("needs no new input, and input_tokens counts its history", async () => {
    const { responses } = alice();
    const first = await responses.create({ model: "m", input: "one" });
    await responses.create({ model: "m", previous_response_id: first.id });
    expect(said()).toEqual([
      ["user", "one"],
      ["assistant", "Hello"],
    ]);
    const count = (previous_response_id?: string | null) =>
      responses.inputTokens.count({ model: "m", input: "two", previous_response_id: previous_response_id ?? null });
    expect((await count(first.id)).input_tokens).toBeGreaterThan((await count()).input_tokens);
  });

  test("names the place of an error in the request's own input", async () => {
    const { id } = await alice().responses.create({ model: "m", input: "one" });
    const wrong = { model: "m", previous_response_id: id, input: [{ role: "robot", content: "x" }] };
    const [status, error] = await failed(alice().responses.create(wrong as never));
    expect([status, error]).toMatchObject([400, { message: expect.stringMatching(/^input\.0\.role: /) }]);
  });
});

describe("a kept response", () => {
  test("lists its input with ids, in pages, with the input that it continues", async () => {
    const { responses } = alice();
    const first = await responses.create({ model: "m", input: "one" });
    const input = [
      { role: "user" as const, content: "two" },
      { role: "user" as const, content: [{ type: "input_text" as const, text: "three" }] },
    ];
    const second = await responses.create({ model: "m", input, previous_response_id: first.id });
    const texts: unknown[] = [];
    const page = await responses.inputItems.list(second.id, { limit: 3, order: "asc" });
    expect(page.hasNextPage()).toBe(true);
    for await (const item of page) texts.push(item.type === "message" && item.content[0]);
    const text = (type: string, words: string) => expect.objectContaining({ type, text: words });
    expect(texts).toEqual([
      text("input_text", "one"),
      text("output_text", "Hello"),
      text("input_text", "two"),
      text("input_text", "three"),
    ]);
    const newest = await responses.inputItems.list(second.id);
    expect([newest.data.length, newest.data[0]!.id, newest.hasNextPage()]).toEqual([4, expect.any(String), false]);
    const wrong = async (query: string) =>
      (await harness.call("GET", `/v1/responses/${second.id}/input_items?${query}`, undefined, bearer("a1"))).status;
    for (const query of ["limit=0", "limit=101", "limit=x", "order=up", "after=nope"])
      expect([query, await wrong(query)]).toEqual([query, 400]);
  });

  test("is not found if it is deleted or unknown, or continues a deleted one", async () => {
    const { responses } = alice();
    const first = await responses.create({ model: "m", input: "one" });
    const second = await responses.create({ model: "m", input: "two", previous_response_id: first.id });
    expect((await harness.call("DELETE", `/v1/responses/${first.id}`, undefined, bearer("a1"))).status).toBe(200);
    expect(await failed(responses.retrieve(first.id))).toEqual(notFound(first.id) as never);
    expect(await failed(responses.delete(first.id))).toEqual(notFound(first.id) as never);
    expect(await failed(responses.inputItems.list(first.id))).toEqual(notFound(first.id) as never);
    for (const [id, missing] of [
      [first.id, first.id],
      [second.id, first.id],
      ["resp_x", "resp_x"],
    ] as const) {
      const again = responses.create({ model: "m", input: "x", previous_response_id: id });
      expect(await failed(again)).toEqual(noPrevious(missing) as never);
    }
    expect((await responses.retrieve(second.id)).id).toBe(second.id);
  });

  test("is not stored with store: false", async () => {
    const { responses } = alice();
    const { id, store } = (await responses.create({ model: "m", input: "one", store: false })) as never as Kept;
    expect(store).toBe(false);
    expect(await failed(responses.retrieve(id))).toEqual(notFound(id) as never);
    const again = responses.create({ model: "m", input: "x", previous_response_id: id });
    expect(await failed(again)).toEqual(noPrevious(id) as never);
  });

  test("cannot be cancelled or streamed again", async () => {
    const { responses } = alice();
    const { id } = await responses.create({ model: "m", input: "one" });
    expect(await failed(responses.cancel(id))).toMatchObject([
      400,
      { message: "Cannot cancel a synchronous response.", type: "invalid_request_error" },
    ]);
    expect(await failed(responses.cancel("resp_x"))).toEqual(notFound("resp_x") as never);
    const resumed = responses.retrieve(id, { stream: true });
    expect(await failed(resumed)).toMatchObject([400, { param: "stream" }]);
  });

  test("belongs to the owner of its key: the key's name, or else the key", async () => {
    for (const [owner, same, others] of [
      ["a1", ["a1", "a2"], ["b1", "c1", "d1"]],
      ["c1", ["c1"], ["a1", "b1", "d1"]],
    ] as const) {
      const made = await clientOf(owner).responses.create({ model: "m", input: "mine" });
      const { id } = made;
      for (const key of same) expect((await clientOf(key).responses.retrieve(id)).id).toBe(id);
      for (const key of others) {
        const { responses } = clientOf(key);
        expect(await failed(responses.retrieve(id))).toEqual(notFound(id) as never);
        expect(await failed(responses.inputItems.list(id))).toEqual(notFound(id) as never);
        expect(await failed(responses.delete(id))).toEqual(notFound(id) as never);
        expect(await failed(responses.cancel(id))).toEqual(notFound(id) as never);
        const mine = { model: "m", input: "x", previous_response_id: id };
        expect(await failed(responses.create(mine))).toEqual(noPrevious(id) as never);
        const item = { type: "item_reference" as const, id: made.output[0]!.id! };
        const named = responses.create({ model: "m", input: [item] });
        expect((await failed(named))[0]).toBe(400);
      }
      expect((await clientOf(owner).responses.retrieve(id)).id).toBe(id);
    }
  });
});

describe("other servers", () => {
  test("find the responses after a restart with reordered keys", async () => {
    const home = mkdtempSync(join(tmpdir(), "hearth-kept-"));
    const before = await makeHarness({ apiKeys: ["x1", "y1"], home });
    const { id } = await clientOf("x1", before.listen().url).responses.create({ model: "m", input: "one" });
    await before.close();
    const after = await makeHarness({ apiKeys: ["y1", "x1"], home });
    const { url: at } = after.listen();
    const continued = { model: "m", input: "two", previous_response_id: id };
    await clientOf("x1", at).responses.create(continued);
    expect((after.runtime.requests.at(-1) as ChatRequest).messages).toHaveLength(3);
    expect(await failed(clientOf("y1", at).responses.create(continued))).toEqual(noPrevious(id) as never);
    await after.close();
    await rm(home, { recursive: true });
  });

  test("answer requests and keep nothing if responses are off or the disk refuses them", async () => {
    const home = mkdtempSync(join(tmpdir(), "hearth-kept-"));
    await Bun.write(join(home, "responses.db"), "no database ".repeat(100));
    const off = { responses: { count: 0, bytes: 1e6, ageMs: Infinity } };
    const small = { responses: { count: 9, bytes: 10, ageMs: Infinity } };
    for (const [config, store] of [
      [off, false],
      [{ home }, false],
      [small, true],
    ] as const) {
      const server = await makeHarness(config);
      const { responses } = clientOf("any", server.listen().url);
      const made = (await responses.create({ model: "m", input: "one" })) as never as Kept;
      expect(made.store).toBe(store);
      const [status] = await failed(responses.create({ model: "m", input: "x", previous_response_id: made.id }));
      expect(status).toBe(config === off || config === small ? 400 : 500);
      if (config !== off) expect(server.logs.filter(({ level }) => level === "warn").length).toBeGreaterThan(0);
      await server.close();
    }
    await chmod(home, 0o700);
    await rm(home, { recursive: true });
  });
});

interface Kept {
  readonly id: string;
  readonly store: boolean;
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
