import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { AppError } from "../../src/base/errors.ts";
import type { InferenceEvent } from "../../src/runtime/requests/runtime.ts";
import { hello, type Script } from "./fakes.ts";
import { linesOf, makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());
beforeEach(() => void (harness.runtime.script = hello));

async function failure(path: string, body: unknown): Promise<[number, unknown]> {
  const response = await harness.post(path, body);
  expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
  return [response.status, await response.json()];
}

describe("bad and missing models", () => {
  test.each([
    ["generate", {}, 404, "model '' not found"],
    ["generate", { model: "" }, 404, "model '' not found"],
    ["generate", { model: null }, 404, "model '' not found"],
    ["generate", { model: "a b" }, 400, "invalid model name"],
    ["generate", { model: "../m" }, 400, "invalid model name"],
    ["generate", { model: "Nope" }, 404, "model 'Nope' not found"],
    ["generate", { model: "m:cloud" }, 404, "model 'm:cloud' not found"],
    ["chat", {}, 400, "model is required"],
    ["chat", { model: " " }, 400, "model is required"],
    ["chat", { model: "a b" }, 400, "invalid model name"],
    ["chat", { model: "nope" }, 404, "model 'nope' not found"],
    ["show", {}, 400, "model is required"],
    ["show", { model: "a b" }, 400, "invalid model name"],
    ["show", { model: "nope" }, 404, "model 'nope:latest' not found"],
    ["show", { name: "u/nope:1" }, 404, "model 'u/nope:1' not found"],
  ])("%s %j: %d %s", async (route, body, status, error) => {
    expect(await failure(`/api/${route}`, body)).toEqual([status, { error }]);
  });
});

describe("bodies", () => {
  test.each([
    ["generate", undefined, "missing request body"],
    ["generate", " \n\t", "missing request body"],
    ["chat", "", "missing request body"],
    ["show", "", "missing request body"],
    ["generate", "x", "request body: expected JSON: Unexpected identifier"],
    ["generate", "{", "request body: expected JSON: Expected '}'"],
    ["generate", '{"model":"m",}', "request body: expected JSON: Property name must be a string literal"],
    ["generate", '{"model":"m"} trailing', "request body: expected JSON: Unable to parse JSON string"],
    ["generate", "[".repeat(2000), "request body: expected at most 1000 levels, got more"],
    ["generate", "[]", "request body: expected an object, got an array"],
    ["generate", '"x"', 'request body: expected an object, got "x"'],
    ["chat", "7", "request body: expected an object, got 7"],
    ["generate", '{"stream":"no"}', 'stream: expected true or false, got "no"'],
    ["generate", '{"STREAM":1}', "stream: expected true or false, got 1"],
    ["generate", '{"model":7}', "model: expected a string, got 7"],
    ["generate", '{"prompt":true}', "prompt: expected a string, got true"],
    ["generate", '{"context":[1,1.5]}', "context.1: expected a whole number, got 1.5"],
    ["generate", '{"context":[null]}', "context.0: expected a whole number, got null"],
    ["generate", '{"context":"x"}', 'context: expected an array, got "x"'],
    ["generate", '{"options":[]}', "options: expected an object, got an array"],
    ["generate", '{"images":[7]}', "images.0: expected a string, got 7"],
    ["generate", '{"images":["data:image/png;base64,AA=="]}', "images.0: expected base64, got text that is not"],
    ["chat", '{"messages":[{"content":["x"]}]}', "messages.0.content: expected a string, got an array"],
    ["chat", '{"messages":{}}', "messages: expected an array, got an object"],
    [
      "chat",
      '{"messages":[{"tool_calls":[{"function":{"arguments":7}}]}]}',
      "messages.0.tool_calls.0.function.arguments: expected an object, got 7",
    ],
    ["chat", '{"tools":[{"function":{"name":1}}]}', "tools.0.function.name: expected a string, got 1"],
    ["generate", '{"keep_alive":"5"}', 'keep_alive: expected a number of seconds or a duration such as "5m", got "5"'],
    ["chat", '{"keep_alive":{}}', 'keep_alive: expected a number of seconds or a duration such as "5m", got an object'],
    ["chat", '{"think":"hard"}', 'think: expected true, false, "high", "medium", "low" or "max", got "hard"'],
    ["chat", '{"think":1}', 'think: expected true, false, "high", "medium", "low" or "max", got 1'],
  ])("%s with %p: 400 %s", async (route, text, error) => {
    expect(await failure(`/api/${route}`, text)).toEqual([400, { error }]);
  });

  test("are read with any content type and keys in any case, without unknown and null fields", async () => {
    for (const type of ["application/x-www-form-urlencoded", "text/plain", "application/json"]) {
      const body = '{"MODEL":"m","Prompt":"hi","stream":null,"format":null,"__proto__":{"x":1},"stream":false}';
      const response = await harness.call("POST", "/api/generate", body, { "content-type": type });
      expect(await response.json()).toMatchObject({ model: "m", response: "Hello" });
    }
  });

  test("larger than the limit are refused, with and without a content-length", async () => {
    const { url } = harness.listen();
    const huge = "x".repeat(64 * 1024 * 1024 + 1);
    const error = `request body: expected at most 67108864 bytes, got ${huge.length}`;
    const response = await fetch(`${url}/api/generate`, { method: "POST", body: huge });
    expect([response.status, await response.json()]).toEqual([413, { error }]);
    const chunks = new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(1024 * 1024)),
    });
    const endless = new Request("http://localhost/api/generate", { method: "POST", body: chunks });
    expect((await harness.app.handle(endless)).status).toBe(413);
  });
});

describe("contradicting or invalid fields", () => {
  test.each([[{ template: "x" }], [{ system: "x" }], [{ context: [1] }]])("are refused: raw with %j", async (extra) => {
    const error = "raw mode does not support template, system, or context";
    expect(await failure("/api/generate", { model: "m", prompt: "x", raw: true, ...extra })).toEqual([400, { error }]);
  });

  test.each([
    ["xml", '"xml"'],
    [7, "7"],
    [["json"], "an array"],
  ])("are refused: format %j", async (format, got) => {
    const error = `format: expected "json" or a JSON schema, got ${got}`;
    expect(await failure("/api/chat", { model: "m", messages: [{}], format })).toEqual([400, { error }]);
  });

  test.each([
    [{ temperature: "hot" }, 'option "temperature" must be of type float32'],
    [{ top_k: true }, 'option "top_k" must be of type integer'],
    [{ stop: "x" }, 'option "stop" must be of type array'],
    [{ stop: [1] }, 'option "stop" must be of an array of strings'],
    [{ use_mmap: 1 }, 'option "use_mmap" must be of type boolean'],
  ])("are refused: options %j", async (options, error) => {
    expect(await failure("/api/generate", { model: "m", prompt: "x", options })).toEqual([400, { error }]);
  });
});

describe("an error of the runtime", () => {
  const failing = (error: Error, before: InferenceEvent[] = []): Script =>
    async function* () {
      yield* before;
      throw error;
    };
  const busy = "server busy, please try again.  maximum pending requests exceeded";

  test.each([
    [new AppError("busy", busy), 503],
    [new AppError("unsupported", '"m" does not support chat'), 400],
    [new AppError("runner", "model runner has unexpectedly stopped"), 500],
    [new AppError("bad_file", "m.gguf: truncated"), 500],
    [new AppError("cancelled", "request canceled"), 499],
    [new Error("invariant: a bug"), 500],
  ])("%s before the first piece gives %d, streaming or not", async (error, status) => {
    harness.runtime.script = failing(error);
    for (const stream of [true, false]) {
      const body = { model: "m", messages: [{ content: "x" }], stream };
      expect(await failure("/api/chat", body)).toEqual([status, { error: error.message }]);
    }
  });

  test("after the first piece ends the stream with an error line", async () => {
    harness.runtime.script = failing(new AppError("runner", "device lost"), [{ kind: "text", text: "He" }]);
    const response = await harness.post("/api/chat", { model: "m", messages: [{ content: "x" }] });
    expect(response.status).toBe(200);
    const lines = await linesOf(response);
    expect(lines).toEqual([expect.objectContaining({ done: false }), { error: "device lost" }]);
    expect(harness.logs.at(-1)).toMatchObject({ msg: "request", status: 200, error: "device lost" });
  });

  test("gives a status instead of a line without streaming", async () => {
    harness.runtime.script = failing(new AppError("runner", "device lost"), [{ kind: "text", text: "He" }]);
    const body = { model: "m", messages: [{ content: "x" }], stream: false };
    expect(await failure("/api/chat", body)).toEqual([500, { error: "device lost" }]);
  });
});

describe("paths and methods", () => {
  test.each([
    ["GET", "/nothing", 404, "404 page not found", null],
    ["POST", "/", 405, "405 method not allowed", "GET, HEAD"],
    ["GET", "/api/generate", 405, "405 method not allowed", "POST"],
    ["DELETE", "/api/chat", 405, "405 method not allowed", "POST"],
    ["POST", "/api/tags", 405, "405 method not allowed", "GET, HEAD"],
  ])("%s %s: %d", async (method, path, status, text, allow) => {
    const response = await harness.call(method, path);
    expect([response.status, await response.text()]).toEqual([status, text]);
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(response.headers.get("allow")).toBe(allow);
  });

  test.each([
    ["GET", "/api", 404, { error: "there is no GET /api" }],
    ["GET", "/api/generate/x", 404, { error: "there is no GET /api/generate/x" }],
    [
      "POST",
      "/v1/nothing",
      404,
      { error: { message: "there is no POST /v1/nothing", type: "not_found_error", param: null, code: null } },
    ],
    [
      "POST",
      "/v1/messages/nothing",
      404,
      { type: "error", error: { type: "not_found_error", message: "there is no POST /v1/messages/nothing" } },
    ],
    [
      "GET",
      "/v1/chat/completions",
      405,
      { error: expect.objectContaining({ message: "/v1/chat/completions takes POST, got GET" }) },
    ],
  ])("%s %s: %d in the shape of its API", async (method, path, status, body) => {
    const response = await harness.call(method, path);
    expect([response.status, await response.json()]).toEqual([status, expect.objectContaining(body)] as never);
    expect(response.headers.get("allow")).toBe(status === 405 ? "POST" : null);
    if (path.startsWith("/v1"))
      expect(response.headers.get(/messages/.test(path) ? "request-id" : "x-request-id")).toStartWith("req_");
  });

  test("an error about a long path quotes only a part of it", async () => {
    expect((await (await harness.call("GET", `/v1/${"x".repeat(5000)}`)).text()).length).toBeLessThan(400);
  });

  test.each(["/", "/api/version", "/api/tags"])("HEAD %s has a status and no body", async (path) => {
    const { url } = harness.listen();
    const response = await fetch(url + path, { method: "HEAD" });
    expect([response.status, await response.text()]).toEqual([200, ""]);
  });

  test("the root answers the text that clients probe for", async () => {
    const response = await harness.call("GET", "/");
    expect([response.headers.get("content-type"), await response.text()]).toEqual([
      "text/plain; charset=utf-8",
      "Ollama is running",
    ]);
    expect(await (await harness.call("GET", "/api/version")).text()).toBe('{"version":"0.33.0","hearth":"1.2.3"}');
  });
});
