import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { GenerateRequest } from "../../src/runtime/requests/runtime.ts";
import { DONE, hello, play } from "./fakes.ts";
import { CREATED_AT, linesOf, makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());
beforeEach(() => {
  harness.runtime.script = hello;
  harness.runtime.requests.length = 0;
  harness.logs.length = 0;
});

const generate = (body: object) => harness.post("/api/generate", { model: "m", prompt: "hi", ...body });
const asked = () => harness.runtime.requests.at(-1) as GenerateRequest;
const FINAL = {
  done: true,
  done_reason: "stop",
  context: [1, 2, 3],
  total_duration: 5_000_000,
  load_duration: 1_000_000,
  prompt_eval_count: 3,
  prompt_eval_duration: 2_000_000,
  eval_count: 2,
  eval_duration: 1_500_000,
};

describe("an answer", () => {
  test("streams one line of JSON per piece, statistics only on the last", async () => {
    const response = await generate({});
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    expect(await response.text()).toBe(
      [
        `{"model":"m","created_at":"${CREATED_AT}","response":"He","done":false}`,
        `{"model":"m","created_at":"${CREATED_AT}","response":"llo","done":false}`,
        `{"model":"m","created_at":"${CREATED_AT}","response":"","done":true,"done_reason":"stop","context":[1,2,3],` +
          '"total_duration":5000000,"load_duration":1000000,"prompt_eval_count":3,"prompt_eval_duration":2000000,' +
          '"eval_count":2,"eval_duration":1500000}\n',
      ].join("\n"),
    );
  });

  test("gives one object without streaming", async () => {
    const response = await generate({ stream: false });
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(await response.json()).toEqual({ model: "m", created_at: CREATED_AT, response: "Hello", ...FINAL });
  });

  test("streams if stream is null", async () => {
    expect((await generate({ stream: null })).headers.get("content-type")).toBe("application/x-ndjson");
  });

  test("streams for images or a suffix without a prompt, instead of loading the model", async () => {
    for (const body of [{ images: ["aGk="] }, { suffix: "end" }]) {
      const response = await generate({ ...body, prompt: "" });
      expect(response.headers.get("content-type")).toBe("application/x-ndjson");
      await response.text();
    }
    expect((await generate({ prompt: "", images: [], suffix: "" })).headers.get("content-type")).toContain("charset");
  });

  test("has no context if the runtime returns none", async () => {
    harness.runtime.script = play([{ kind: "done", reason: "length" }]);
    const [last] = await linesOf(await generate({ raw: true }));
    expect(last).toEqual({ model: "m", created_at: CREATED_AT, response: "", done: true, done_reason: "length" });
  });

  test("ends with an error if the runtime ends without a final event", async () => {
    harness.runtime.script = play([{ kind: "text", text: "He" }]);
    const error = { error: "model runner has unexpectedly stopped" };
    expect((await linesOf(await generate({}))).at(-1)).toEqual(error);
    const response = await generate({ stream: false });
    expect([response.status, await response.json()]).toEqual([500, error]);
  });
});

describe("fields of the request", () => {
  test("reach the runtime unchanged", async () => {
    const image = Buffer.from("pixels");
    await generate({
      stream: false,
      suffix: "end",
      images: [image.toString("base64")],
      format: "json",
      options: { temperature: 0, seed: 7, stop: ["a"], top_k: 3.9, mirostat_tau: null },
      system: "Be brief.",
      template: "{{ .Prompt }}",
      context: [5, 6],
      keep_alive: "10m",
    });
    expect(asked()).toEqual({
      model: "m",
      prompt: "hi",
      raw: false,
      suffix: "end",
      images: [new Uint8Array(image)],
      format: "json",
      options: { temperature: 0, seed: 7, stop: ["a"], top_k: 3 },
      system: "Be brief.",
      template: "{{ .Prompt }}",
      context: [5, 6],
      keepAliveMs: 600_000,
      signal: expect.any(AbortSignal),
    });
  });

  test("stay absent if they are missing or empty", async () => {
    await (await generate({ format: "", suffix: "", unknown: 1 })).text();
    expect(Object.keys(asked()).sort()).toEqual(["model", "options", "prompt", "raw", "signal"]);
  });

  test("include no empty system message, although Go's client always sends one", async () => {
    await (await generate({ system: "" })).text();
    expect(asked()).not.toHaveProperty("system");
  });

  test("may have a JSON schema as format", async () => {
    const schema = { $schema: "x", type: "object", properties: { __proto__x: {} } };
    await (await generate({ format: schema })).text();
    expect(asked().format).toEqual(schema);
  });

  test.each([
    [0, 0],
    [1.5, 1500],
    [-1, Infinity],
    ["0", 0],
    ["-1s", Infinity],
    ["1h30m", 5_400_000],
  ])("keep_alive %p is %d ms", async (keepAlive, ms) => {
    await (await generate({ keep_alive: keepAlive })).text();
    expect(asked().keepAliveMs).toBe(ms);
  });

  test("unknown options are logged, not refused", async () => {
    await (await generate({ options: { mood: 1 } })).text();
    expect(harness.logs).toContainEqual(expect.objectContaining({ level: "warn", options: ["mood"] }));
  });
});

describe("a request without a prompt", () => {
  test.each([
    [{}, "load"],
    [{ prompt: "" }, "load"],
    [{ prompt: null, stream: true }, "load"],
    [{ keep_alive: 0 }, "unload"],
    [{ prompt: "", keep_alive: "0s", stream: true }, "unload"],
  ])("%j gives one object with done_reason %s", async (body, reason) => {
    const response = await harness.post("/api/generate", { model: "m", ...body });
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(await response.text()).toBe(
      `{"model":"m","created_at":"${CREATED_AT}","response":"","done":true,"done_reason":"${reason}"}`,
    );
  });
});

test("the log has one line per request, with counts and without text", async () => {
  await (await generate({ prompt: "SECRET" })).text();
  const lines = harness.logs.filter((line) => line["msg"] === "request");
  expect(lines).toEqual([
    expect.objectContaining({
      method: "POST",
      path: "/api/generate",
      status: 200,
      ms: expect.any(Number),
      model: "m",
      done_reason: "stop",
      prompt_eval_count: 3,
      eval_count: 2,
    }),
  ]);
  expect(JSON.stringify(harness.logs)).not.toContain("SECRET");
});

test("the answer has the model's name as the request spells it", async () => {
  const [first] = await linesOf(await harness.post("/api/generate", { model: "M", prompt: "hi" }));
  expect(first?.["model"]).toBe("M");
  expect(DONE.kind).toBe("done");
});
