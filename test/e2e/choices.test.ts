/** Several choices, several prompts, and prompts of token ids in the OpenAI API, on the real server. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { eventually, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

let hearth: Hearth;
beforeAll(async () => void (hearth = await startHearth()));
afterAll(() => hearth.stop());

const model = "hearth";
const messages = [{ role: "user", content: `${"Tell me about rain. ".repeat(20)}Hello!` }];
const settings = { model, temperature: 1.5, seed: 40, max_tokens: 12 };

async function ask(path: string, body: object): Promise<any> {
  const response = await hearth.post(path, { ...settings, ...body });
  const reply = await response.json();
  expect([response.status, reply]).toEqual([200, reply]);
  return reply;
}

async function streamed(path: string, body: object): Promise<any[]> {
  const response = await hearth.post(path, { ...settings, stream: true, ...body });
  const frames = (await response.text()).split("\n\n").filter((frame) => frame.startsWith("data: "));
  expect(frames.pop()).toBe("data: [DONE]");
  return frames.map((frame) => JSON.parse(frame.slice(6)));
}

const idsOf = async (content: string): Promise<number[]> =>
  ((await (await hearth.post("/api/tokenize", { model, content })).json()) as { tokens: number[] }).tokens;

test("choice i is the answer to seed + i, whole and streamed, and the choices share the prompt's cache", async () => {
  const alone: string[] = [];
  for (let i = 0; i < 4; i++) {
    const { choices } = await ask("/v1/chat/completions", { messages, seed: 40 + i });
    alone.push(choices[0].message.content);
  }
  expect(new Set(alone).size).toBeGreaterThan(2);
  const { choices, usage } = await ask("/v1/chat/completions", { messages, n: 4 });
  expect(choices.map((choice: any) => [choice.index, choice.message.content])).toEqual([...alone.entries()]);
  const one = await ask("/v1/chat/completions", { messages });
  expect(usage.prompt_tokens).toBe(one.usage.prompt_tokens);
  expect(usage.completion_tokens).toBeGreaterThan(one.usage.completion_tokens);

  const chunks = await streamed("/v1/chat/completions", { messages, n: 4, stream_options: { include_usage: true } });
  expect(chunks.pop()).toMatchObject({ choices: [], usage: { completion_tokens: usage.completion_tokens } });
  const texts = ["", "", "", ""];
  for (const {
    choices: [choice],
  } of chunks)
    texts[choice.index] += choice.delta.content ?? "";
  expect(texts).toEqual(alone);
  const ends = chunks.filter(({ choices: [choice] }) => choice.finish_reason !== null);
  expect(ends.map(({ choices: [choice] }) => choice.index).toSorted()).toEqual([0, 1, 2, 3]);
});

test("the choices after the first take a new prompt from the cache", async () => {
  const before = await cached();
  const fresh = [{ role: "user", content: `${"Count the stars of the night. ".repeat(20)}Now!` }];
  const { usage } = await ask("/v1/chat/completions", { messages: fresh, n: 3 });
  expect(usage.prompt_tokens).toBeGreaterThan(100);
  expect((await cached()) - before).toBeGreaterThanOrEqual(2 * (usage.prompt_tokens - 40));
});

/** Prompt tokens that all requests together had from the cache. */
async function cached(): Promise<number> {
  const text = await (await fetch(`${hearth.url}/metrics/vllm`)).text();
  const line = /^vllm:prefix_cache_hits_total.*? (\d+)$/m.exec(text);
  return Number(line?.[1] ?? 0);
}

test("prompts are texts or token ids; choices are in the order of the prompts, and echo puts the prompt first", async () => {
  const ids = await idsOf("The rain falls");
  const { choices } = await ask("/v1/completions", { prompt: ["Hello", "The sun"], n: 2, echo: true, logprobs: 1 });
  expect(choices.map(({ index, text }: any) => [index, text.startsWith(index < 2 ? "Hello" : "The sun")])).toEqual(
    [0, 1, 2, 3].map((index) => [index, true]),
  );
  for (const { logprobs } of choices) expect(logprobs.tokens.length).toBeGreaterThan(0);
  const { choices: raw, usage } = await ask("/v1/completions", { prompt: [ids, ids], temperature: 0, echo: true });
  expect(usage.prompt_tokens).toBe(2 * ids.length);
  expect(raw[0].text).toStartWith("The rain falls");
  expect(raw[1].text).toBe(raw[0].text);
  const native = await hearth.post("/api/generate", {
    model,
    prompt: "The rain falls",
    raw: true,
    stream: false,
    options: { temperature: 0, num_predict: 12 },
  });
  expect(raw[0].text).toBe(`The rain falls${((await native.json()) as any).response}`);
  const [single] = (await ask("/v1/completions", { prompt: ids, temperature: 0 })).choices;
  expect(raw[0].text).toEndWith(single.text);
  const chunks = await streamed("/v1/completions", { prompt: ["Hello", ids], temperature: 0, echo: true });
  const texts = ["", ""];
  for (const {
    choices: [choice],
  } of chunks)
    texts[choice.index] += choice.text;
  expect(texts[1]).toBe(raw[0].text);
  expect(texts[0]).toStartWith("Hello");
});

test("a client that disconnects ends all choices, and one bad prompt fails the request", async () => {
  const leave = new AbortController();
  const body = JSON.stringify({ ...settings, messages, n: 4, max_tokens: 4000, stream: true, ignore_eos: true });
  const response = await fetch(`${hearth.url}/v1/chat/completions`, { method: "POST", body, signal: leave.signal });
  await response.body!.getReader().read();
  leave.abort();
  const bad = await hearth.post("/v1/completions", { ...settings, prompt: [[1, 2], [999_999]] });
  expect(bad.status).toBe(400);
  const running = async (): Promise<number> => {
    const text = await (await fetch(`${hearth.url}/metrics`)).text();
    return Number(/^hearth_requests_running (\d+)$/m.exec(text)?.[1] ?? -1);
  };
  expect(await eventually(async () => (await running()) === 0)).toBe(true);
});
