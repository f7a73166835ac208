/**
 * The API document's rows for generate, chat, messages, tools, statistics and the states of a model, one test each, on
 * the real server with the embedded model. Options have a separate file.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { ndjson, startHearth, type Hearth } from "../e2e/hearth.ts";

setDefaultTimeout(120_000);

const MODEL = "hearth";
const PROMPT = "Tell me a story about a fox.";
const GREEDY = { temperature: 0, num_predict: 12 };

let hearth: Hearth;
beforeAll(async () => void (hearth = await startHearth()));
afterAll(() => hearth.stop());

interface Reply {
  readonly status: number;
  readonly body: any;
}

async function call(path: string, body: object): Promise<Reply> {
  const response = await hearth.post(path, { model: MODEL, stream: false, ...body });
  return { status: response.status, body: await response.json() };
}
const generate = (body: object): Promise<Reply> => call("/api/generate", { prompt: PROMPT, options: GREEDY, ...body });
const user = (content: string) => ({ role: "user", content });
const chat = (body: object): Promise<Reply> =>
  call("/api/chat", { messages: [user(PROMPT)], options: GREEDY, ...body });

async function lines(path: string, body: object): Promise<any[]> {
  const response = await hearth.post(path, { model: MODEL, ...body });
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/x-ndjson"]);
  return Array.fromAsync(ndjson(response));
}

async function loaded(): Promise<any | undefined> {
  const reply = (await (await fetch(`${hearth.url}/api/ps`)).json()) as { models: any[] };
  return reply.models.find(({ name }) => name === "hearth:latest");
}

/** Ids of a text with its markup, as the model reads it. */
const idsOf = async (content: string): Promise<number[]> => (await call("/api/tokenize", { content })).body.tokens;

const STATISTICS = [
  "total_duration",
  "load_duration",
  "prompt_eval_count",
  "prompt_eval_duration",
  "eval_count",
  "eval_duration",
];

describe("POST /api/generate", () => {
  test("model: is required, its tag defaults to latest, and an unknown model gets 404", async () => {
    expect((await generate({ model: "hearth:latest" })).body.response).toBe((await generate({})).body.response);
    expect(await generate({ model: "nobody:1b" })).toEqual({
      status: 404,
      body: { error: "model 'nobody:1b' not found" },
    });
    expect((await generate({ model: undefined })).status).toBe(404);
  });

  test("prompt: an empty or missing prompt loads the model and gets one object with an empty response", async () => {
    for (const prompt of ["", undefined]) {
      const { body } = await generate({ prompt, stream: true });
      expect(body).toMatchObject({ model: MODEL, response: "", done: true, done_reason: "load" });
      expect(Object.keys(body)).toEqual(["model", "created_at", "response", "done", "done_reason"]);
    }
  });

  test("images: a model without vision refuses them", async () => {
    const { status, body } = await generate({ images: [Buffer.from("pixels").toString("base64")] });
    expect([status, body.error]).toEqual([400, expect.stringContaining("does not support images")]);
    expect((await generate({ images: [] })).status).toBe(200);
  });

  test("format json: the response is a well-formed JSON object", async () => {
    for (const seed of [1, 2, 3]) {
      const options = { seed, temperature: 1, num_predict: 400 };
      const { body } = await generate({ prompt: "Give me a red apple as JSON.", format: "json", options });
      if (body.done_reason === "stop") expect(JSON.parse(body.response)).toBeObject();
    }
    expect((await generate({ format: "xml" })).body.error).toBe('format: expected "json" or a JSON schema, got "xml"');
  });

  test("system: replaces the model's own system message", async () => {
    const prefix = "<|im_start|>system\nYou are a pirate.<|im_end|>\n";
    const { body } = await generate({ system: "You are a pirate.", options: { ...GREEDY, num_predict: 1 } });
    const ids = await idsOf(prefix);
    expect(body.context.slice(0, ids.length)).toEqual(ids);
  });

  test("template: replaces the model's own template", async () => {
    const { body } = await generate({ template: "A: {{ .System }}|{{ .Prompt }}", system: "s", prompt: "p" });
    const ids = await idsOf("A: s|p");
    expect(body.context.slice(0, ids.length)).toEqual(ids);
    expect(body.prompt_eval_count).toBe(ids.length);
    expect((await generate({ template: "{{ .Prompt" })).status).toBe(400);
  });

  test("context: a previous reply's context is read before the prompt", async () => {
    const first = await generate({ prompt: "My name is Anna." });
    expect(first.body.context.length).toBe(first.body.prompt_eval_count + first.body.eval_count);
    const second = await generate({ prompt: "What is my name?", context: first.body.context });
    expect(second.body.context.slice(0, first.body.context.length)).toEqual(first.body.context);
    expect(second.body.prompt_eval_count).toBeGreaterThan(first.body.context.length);
    const bad = await generate({ context: [1, 2 ** 40] });
    expect([bad.status, bad.body.error]).toEqual([400, expect.stringContaining(String(2 ** 40))]);
  });

  test("stream: objects with done false are sent by default, then one with statistics and no text", async () => {
    const all = await lines("/api/generate", { prompt: PROMPT, options: GREEDY });
    const last = all.pop();
    for (const object of all) {
      expect(Object.keys(object)).toEqual(["model", "created_at", "response", "done"]);
      expect(object.done).toBe(false);
      expect(new Date(object.created_at).getTime()).toBeGreaterThan(1.6e12);
    }
    expect(last).toMatchObject({ response: "", done: true, done_reason: "length" });
    for (const name of ["context", ...STATISTICS]) expect(last).toHaveProperty(name);
    expect(all.map(({ response }) => response).join("")).toBe((await generate({})).body.response);
  });

  test("stream: false gets one object with the whole response and the same statistics", async () => {
    const { body } = await generate({});
    expect(body.response.length).toBeGreaterThan(5);
    expect(body).toMatchObject({ model: MODEL, done: true, done_reason: "length" });
    for (const name of ["context", ...STATISTICS]) expect(body).toHaveProperty(name);
  });

  test("raw: the prompt is used unchanged, and no context is returned", async () => {
    const prompt = "Once upon a time";
    const { body } = await generate({ raw: true, prompt });
    expect(body.prompt_eval_count).toBe((await idsOf(prompt)).length);
    expect(body).not.toHaveProperty("context");
    const mixed = await generate({ raw: true, system: "s" });
    expect([mixed.status, mixed.body.error]).toEqual([400, "raw mode does not support template, system, or context"]);
  });

  test("keep_alive: accepts a duration, seconds, a negative number for ever and 0 to unload; else 400", async () => {
    const remaining = async (keep_alive: unknown): Promise<number> => {
      await generate({ keep_alive, options: { num_predict: 1 } });
      const model = await loaded();
      return model ? (Date.parse(model.expires_at) - Date.now()) / 1000 : 0;
    };
    for (const [given, seconds] of [
      ["10m", 600],
      ["1h30m", 5400],
      [90, 90],
      [90.5, 90.5],
      ["90000ms", 90],
      [null, 90], // the last value counts
    ] as const) {
      const left = await remaining(given);
      expect(left).toBeLessThanOrEqual(seconds);
      expect(left).toBeGreaterThan(seconds - 60);
    }
    for (const forever of [-1, "-1m"]) expect(await remaining(forever)).toBeGreaterThan(1e8);
    for (const bad of ["5", "soon", true, {}]) {
      const { status, body } = await generate({ keep_alive: bad });
      expect([status, typeof body.error]).toEqual([400, "string"]);
    }
    expect(await remaining("0")).toBeLessThanOrEqual(0);
    expect(await remaining("5m")).toBeGreaterThan(240);
    expect(await remaining(0)).toBeLessThanOrEqual(0);
  });

  test("truncate: false makes a prompt beyond the context 400; by default the answer reports the truncation", async () => {
    const long = { prompt: "word ".repeat(300), options: { ...GREEDY, num_ctx: 128 } };
    const refused = await generate({ ...long, truncate: false });
    expect([refused.status, refused.body.error]).toEqual([
      400,
      expect.stringMatching(/^the prompt is longer than the context length currently available to the model;/),
    ]);
    expect((await generate({ ...long, shift: false })).status).toBe(400);
    expect((await generate(long)).body).toMatchObject({ done: true, truncated: true });
    expect((await generate({})).body).not.toHaveProperty("truncated");
  });

  test("shift: a full context is shifted by default; with false, the answer ends with done_reason length", async () => {
    const options = { temperature: 0, num_ctx: 64, num_predict: 150, stop: [] };
    const schema = { type: "array", items: { type: "integer" }, minItems: 500 };
    const asked = { prompt: "Count.", format: schema, options };
    expect((await generate(asked)).body).toMatchObject({ eval_count: 150, truncated: true });
    const { body } = await generate({ ...asked, shift: false });
    expect(body.done_reason).toBe("length");
    expect(body.prompt_eval_count + body.eval_count).toBeLessThanOrEqual(65);
  });

  test("logprobs: every token of the answer has an entry with alternatives, streamed or not", async () => {
    const { body } = await generate({ logprobs: true, top_logprobs: 2 });
    expect(body.logprobs.map(({ token }: any) => token).join("")).toBe(body.response);
    expect(body.logprobs).toHaveLength(body.eval_count);
    for (const { token, bytes, logprob, top_logprobs } of body.logprobs) {
      expect(Buffer.from(bytes).toString()).toBe(token);
      expect(logprob).toBeLessThanOrEqual(0);
      expect(top_logprobs).toHaveLength(2);
      expect(top_logprobs[0]).toEqual({ token, logprob, bytes }); // greedy
      expect(top_logprobs[1].logprob).toBeLessThanOrEqual(logprob);
    }
    const streamed = await lines("/api/generate", { prompt: PROMPT, options: GREEDY, logprobs: true });
    const entries = streamed.flatMap(({ logprobs = [] }) => logprobs);
    expect(entries.map(({ token }) => token)).toEqual(body.logprobs.map(({ token }: any) => token));
    expect(entries[0]).not.toHaveProperty("top_logprobs");
    expect((await generate({ top_logprobs: 2 })).body).not.toHaveProperty("logprobs");
  });
});

describe("POST /api/chat", () => {
  test("model: is required, and an unknown model gets 404", async () => {
    expect(await chat({ model: undefined })).toEqual({ status: 400, body: { error: "model is required" } });
    expect((await chat({ model: "nobody" })).status).toBe(404);
  });

  test("messages: an empty or missing array loads the model", async () => {
    for (const messages of [[], undefined]) {
      const { body } = await chat({ messages, stream: true });
      expect(body).toMatchObject({ message: { role: "assistant", content: "" }, done: true, done_reason: "load" });
    }
  });

  test("stream: objects with done false are sent by default, then one with statistics", async () => {
    const all = await lines("/api/chat", { messages: [user(PROMPT)], options: GREEDY });
    const last = all.pop();
    for (const object of all) {
      expect(Object.keys(object)).toEqual(["model", "created_at", "message", "done"]);
      expect(object).toMatchObject({ done: false, message: { role: "assistant" } });
    }
    expect(last).toMatchObject({ message: { role: "assistant", content: "" }, done: true, done_reason: "length" });
    for (const name of STATISTICS) expect(last).toHaveProperty(name);
    expect(last).not.toHaveProperty("context");
    expect(all.map(({ message }) => message.content).join("")).toBe((await chat({})).body.message.content);
  });

  test("stream: false gets one object with the message, done and statistics", async () => {
    const { body } = await chat({});
    expect(body).toMatchObject({ message: { role: "assistant" }, done: true });
    expect(body.message.content.length).toBeGreaterThan(5);
    for (const name of STATISTICS) expect(body).toHaveProperty(name);
  });

  test("format json: the content is a well-formed JSON object", async () => {
    const { body } = await chat({ format: "json", options: { temperature: 0, num_predict: 400 } });
    expect(JSON.parse(body.message.content)).toBeObject();
  });

  test("format: a schema constrains the content", async () => {
    const format = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    const { body } = await chat({ format, options: { temperature: 0, num_predict: 60 } });
    expect(Object.keys(JSON.parse(body.message.content))).toEqual(["n"]);
  });

  test("keep_alive: sets how long the model stays loaded", async () => {
    await chat({ keep_alive: "2h", options: { num_predict: 1 } });
    const left = Date.parse((await loaded()).expires_at) - Date.now();
    expect(left).toBeGreaterThan(1.9 * 3600_000);
  });

  test("truncate: the oldest messages are dropped, system messages stay, and the answer reports it", async () => {
    const turns = Array.from({ length: 40 }, (_, i) => [
      user(`Number ${i} is here.`),
      { role: "assistant", content: "Yes." },
    ]);
    const messages = [{ role: "system", content: "Be brief." }, ...turns.flat(), user("Hello!")];
    const options = { ...GREEDY, num_ctx: 128 };
    const { body } = await chat({ messages, options });
    expect(body).toMatchObject({ done: true, truncated: true });
    expect(body.prompt_eval_count).toBeLessThan(128);
    expect((await chat({ messages, options, truncate: false })).status).toBe(400);
    expect((await chat({})).body).not.toHaveProperty("truncated");
  });

  test("logprobs: every token of a tool call has an entry, though no text is sent", async () => {
    const { body } = await chat({ ...WEATHER, logprobs: true });
    expect(body.message.tool_calls).toHaveLength(1);
    expect(body.logprobs.map(({ token }: any) => token).join("")).toContain("get_weather");
  });
});

const WEATHER = {
  messages: [user("What is the weather in Paris?")],
  options: { temperature: 0, num_predict: 80 },
  tools: [
    {
      type: "function",
      function: {
        name: "get_weather",
        description: "Get the current weather in a city",
        parameters: {
          type: "object",
          properties: {
            city: { type: "string", description: "The name of the city" },
            unit: { type: "string", description: "Degrees", enum: ["celsius", "fahrenheit"] },
          },
          required: ["city"],
        },
      },
    },
  ],
};

describe("Chat message", () => {
  const count = async (messages: object[]): Promise<number> =>
    (await chat({ messages, options: { num_predict: 1 } })).body.prompt_eval_count;

  test("role: messages of system, user, assistant and tool each add to the prompt", async () => {
    const question = user("What is the weather in Paris?");
    const alone = await count([question]);
    expect(await count([{ role: "system", content: "Be brief." }, question])).toBeGreaterThan(alone);
    const answered = [question, { role: "assistant", content: "Sunny." }, user("Thanks.")];
    expect(await count(answered)).toBeGreaterThan(alone);
    const called = { role: "assistant", content: "", tool_calls: [{ function: { name: "f", arguments: { a: 1 } } }] };
    expect(await count([question, called, { role: "tool", content: "18 degrees" }])).toBeGreaterThan(alone);
  });

  test("content: must be text; anything else gets 400", async () => {
    const { status, body } = await chat({ messages: [{ role: "user", content: ["a"] }] });
    expect([status, body.error]).toEqual([400, "messages.0.content: expected a string, got an array"]);
  });

  test("images: null counts as absent; a model without vision refuses them", async () => {
    expect((await chat({ messages: [{ ...user("Hello!"), images: null }] })).status).toBe(200);
    const images = [Buffer.from("pixels").toString("base64")];
    expect((await chat({ messages: [{ ...user("Hello!"), images }] })).status).toBe(400);
    expect((await chat({ messages: [{ ...user("Hello!"), images: ["no base64!"] }] })).status).toBe(400);
  });

  test("tool_calls: calls of earlier turns become part of the prompt", async () => {
    const call = (name: string) => ({
      role: "assistant",
      content: "",
      tool_calls: [{ function: { name, arguments: {} } }],
    });
    expect(await count([user("Hi"), call("f"), user("Hi")])).toBeGreaterThan(
      await count([user("Hi"), { role: "assistant", content: "" }, user("Hi")]),
    );
  });
});

describe("Tool definition and Tool call", () => {
  test("a tool call has empty content, tool_calls with name and arguments, and done_reason stop", async () => {
    const { body } = await chat(WEATHER);
    expect(body).toMatchObject({ done: true, done_reason: "stop", message: { role: "assistant", content: "" } });
    const [{ function: called }] = body.message.tool_calls;
    expect(called).toMatchObject({ name: "get_weather", arguments: { city: "Paris" } });
  });

  test("a tool's name, description and parameters become part of the prompt", async () => {
    const [tool] = WEATHER.tools;
    const size = async (tools: object[]): Promise<number> =>
      (await chat({ ...WEATHER, tools, options: { num_predict: 1 } })).body.prompt_eval_count;
    const whole = await size([tool!]);
    const { description: _, ...plain } = tool!.function;
    expect(await size([{ ...tool, function: plain }])).toBeLessThan(whole);
    const properties = { city: { type: "string" } };
    const parameters = { type: "object", properties, required: [] };
    expect(await size([{ ...tool, function: { ...tool!.function, parameters } }])).toBeLessThan(whole);
    expect(await size([])).toBeLessThan(whole);
  });
});

describe("Generation statistics", () => {
  test("durations are integers in nanoseconds, and parts of the total", async () => {
    const { body } = await generate({});
    for (const name of STATISTICS) expect(Number.isSafeInteger(body[name])).toBe(true);
    const { total_duration: total, load_duration, prompt_eval_duration, eval_duration } = body;
    expect(total).toBeGreaterThan(1e5);
    expect(load_duration + prompt_eval_duration + eval_duration).toBeLessThanOrEqual(total);
    expect(body.eval_count / eval_duration).toBeGreaterThan(0);
  });

  test("prompt_eval_count and eval_count count the tokens of prompt and response, cached ones included", async () => {
    const [first, again] = [await generate({}), await generate({})];
    expect(first.body.prompt_eval_count).toBe(again.body.prompt_eval_count);
    expect(again.body.eval_count).toBe(12);
    expect(again.body.context).toHaveLength(again.body.prompt_eval_count + 12);
  });

  test("done_reason is stop after the model or a stop text ends the answer, and length at the limit", async () => {
    expect((await generate({ prompt: "Hello!", options: { temperature: 0 } })).body.done_reason).toBe("stop");
    expect((await generate({})).body.done_reason).toBe("length");
  });
});

describe("States and transitions", () => {
  const unload = (): Promise<Reply> => generate({ prompt: "", keep_alive: 0 });
  const gone = async (): Promise<boolean> => {
    for (let i = 0; i < 500 && (await loaded()); i++) await Bun.sleep(20);
    return (await loaded()) === undefined;
  };

  test("POST /api/generate with an empty prompt and keep_alive 0 unloads a loaded model", async () => {
    await generate({ prompt: "" });
    expect((await unload()).body).toMatchObject({ response: "", done: true, done_reason: "unload" });
    expect(await gone()).toBe(true);
  });

  test("POST /api/generate with an empty prompt loads the model for five minutes by default", async () => {
    await unload();
    expect(await gone()).toBe(true);
    expect((await generate({ prompt: "" })).body).toMatchObject({ response: "", done: true });
    const left = (Date.parse((await loaded()).expires_at) - Date.now()) / 1000;
    expect(left).toBeGreaterThan(240);
    expect(left).toBeLessThanOrEqual(300);
  });

  test("POST /api/chat without messages loads the model, and unloads it with keep_alive 0", async () => {
    await unload();
    expect(await gone()).toBe(true);
    expect((await chat({ messages: [] })).body.done_reason).toBe("load");
    expect(await loaded()).toBeDefined();
    const { body } = await chat({ messages: [], keep_alive: 0 });
    expect(body).toMatchObject({ done_reason: "unload", message: { role: "assistant", content: "" } });
    expect(await gone()).toBe(true);
  });

  test("a loaded model is unloaded when keep_alive has elapsed", async () => {
    await generate({ prompt: "", keep_alive: "100ms" });
    expect(await gone()).toBe(true);
  });
});
