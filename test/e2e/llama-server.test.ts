/** Routes under llama-server's names, on the real server. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { framesOf } from "../server/harness.ts";
import { missing, recorded } from "../server/llama-shapes.ts";
import { startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

let hearth: Hearth;
beforeAll(async () => void (hearth = await startHearth({ env: { HEARTH_API_KEYS: "me:secret" } })));
afterAll(() => hearth.stop());

const headers = { authorization: "Bearer secret" };
async function call(path: string, body?: object): Promise<{ status: number; body: any }> {
  const content = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(hearth.url + path, { headers, ...content });
  return { status: response.status, body: await response.json() };
}

const post = (path: string, body: object): Promise<Response> =>
  fetch(hearth.url + path, { method: "POST", headers, body: JSON.stringify(body) });

const messages = [{ role: "user", content: "Hello! Who are you?" }];

async function unload(): Promise<void> {
  await call("/api/generate", { model: "hearth", keep_alive: 0 });
  while ((await call("/slots")).body.length > 0) await Bun.sleep(20);
}

test("a request without a model uses the one in memory, and is an error if there is none", async () => {
  await unload(); // another test may have loaded it
  const error = { code: 400, message: "model is required", type: "invalid_request_error" };
  expect(await call("/props")).toEqual({ status: 400, body: { error } });
  expect((await call("/props?model=hearth")).body).toMatchObject({ total_slots: 0, is_sleeping: true });
  expect((await call("/props?model=other")).status).toBe(404);
  expect(await call("/slots")).toEqual({ status: 200, body: [] });
  expect((await call("/tokenize", { content: "x" })).status).toBe(400);

  const chat = { model: "hearth", messages, options: { num_ctx: 512 } };
  expect((await call("/v1/chat/completions", { ...chat, max_tokens: 2 })).status).toBe(200);
  const { body: props } = await call("/props");
  expect(props.default_generation_settings).toMatchObject({ n_ctx: 512, params: { min_keep: 0, top_p: 0.9 } });
  expect(props.total_slots).toBeGreaterThan(0);
  expect(props.chat_template).toContain("messages");
  expect(props).toMatchObject({ model_path: "hearth:latest", is_sleeping: false, modalities: { vision: false } });
  const { body: slots } = await call("/slots");
  expect(slots).toHaveLength(props.total_slots);
  expect(slots[0]).toMatchObject({ id: 0, model: "hearth:latest", n_ctx: 512, is_processing: false });
  expect((await call("/lora-adapters")).body).toEqual([]);
  const refused = await call("/infill", { input_prefix: "x", input_suffix: "y" });
  expect([refused.status, refused.body.error.message]).toEqual([400, expect.stringContaining("support insert")]);
  const { prompt } = (await call("/apply-template", { messages })).body;
  const shown = await call("/v1/chat/completions", { ...chat, _debug_render_only: true });
  expect(prompt).toBe(shown.body._debug_info.rendered_template);
  const { tokens } = (await call("/tokenize", { content: "Hello there" })).body;
  expect((await call("/detokenize", { tokens })).body.content).toBe("Hello there");
});

test("a prompt of more texts than HEARTH_MAX_QUEUE is answered, and so is a request beside it", async () => {
  const prompt = [1, ...Array.from({ length: 700 }, () => "a ")]; // HEARTH_MAX_QUEUE is 512
  const answers = await Promise.all([
    call("/completion", { model: "hearth", prompt, n_predict: 1 }),
    call("/completion", { model: "hearth", prompt: "Hello", n_predict: 1 }),
  ]);
  expect(answers.map(({ status, body }) => [status, body.error])).toEqual([
    [200, undefined],
    [200, undefined],
  ]);
});

test("answers have llama-server's fields, and its text for the embedded model", async () => {
  await call("/v1/chat/completions", { model: "hearth", messages, max_tokens: 1 }); // loads it
  const { health, props, slots, lora, scale, completion, probs, several, stream, embedding, ...more } = recorded;
  const same = async (path: string, theirs: unknown, body?: object): Promise<any> => {
    const { body: ours } = await call(path, body);
    expect([path, missing(theirs, ours)]).toEqual([path, []]);
    return ours;
  };
  await same("/health", health);
  await same("/props", props);
  await same("/slots", slots);
  expect(await same("/lora-adapters", lora)).toEqual(lora);
  expect(await same("/lora-adapters", scale, [])).toEqual(scale);
  const greedy = { prompt: "Hello", n_predict: 4, temperature: 0 };
  const { content, prompt, stop_type, tokens_predicted, tokens_evaluated, tokens_cached } = completion;
  const alike = { content, prompt, stop_type, tokens_predicted, tokens_evaluated };
  const first = await same("/completion", completion, greedy);
  expect(first).toMatchObject({ ...alike, tokens_cached });
  const { tokens } = await same("/completions", probs, { ...greedy, n_predict: 3, n_probs: 2, return_tokens: true });
  expect(tokens).toEqual(probs.tokens);
  await same("/completion", several, { prompt: ["Hello", "There"], n_predict: 2 });
  const frames = await framesOf(await post("/completion", { ...greedy, n_predict: 3, stream: true, n_probs: 2 }));
  expect(frames.map((frame) => frame.content)).toEqual(stream.slice(2).map((frame) => frame.content));
  const vectors = await same("/embedding", embedding, { content: ["hi", "there"] });
  const apart = embedding.flatMap(({ embedding: [one] }, i) =>
    one!.map((x, j) => Math.abs(x - vectors[i].embedding[0][j])),
  );
  expect(Math.max(...apart)).toBeLessThan(0.005);
  const pieces = await same("/tokenize", more.tokenize, { content: "Hello á", with_pieces: true });
  expect(pieces.tokens).toEqual(more.tokenize.tokens);
  const shown = await same("/detokenize", more.detokenize, { tokens: [610, 32] });
  expect(shown.content).toBe(more.detokenize.content);
  const hi = { messages: [{ role: "user", content: "hi" }] };
  expect(await same("/apply-template", more.template, hi)).toEqual(more.template);
  await same("/completion", more.error, { n_predict: 2 });
  await unload(); // other tests begin without a model in memory
});

test("a stream reports the progress of its prompt, and timings", async () => {
  const content = Array.from({ length: 400 }, (_, i) => `word${i}`).join(" ");
  const asking = {
    model: "hearth",
    stream: true,
    return_progress: true,
    timings_per_token: true,
    max_tokens: 4,
    keep_alive: 0,
  };
  const body = JSON.stringify({ ...asking, messages: [{ role: "user", content }], options: { num_ctx: 4096 } });
  const frames = await framesOf(await fetch(`${hearth.url}/v1/chat/completions`, { method: "POST", headers, body }));
  const read: any[] = frames.flatMap((frame) => frame.prompt_progress ?? []);
  const { total } = read[0];
  const processed = read.map((each) => each.processed);
  expect(total).toBeGreaterThan(800);
  expect(read.length).toBeGreaterThan(2);
  expect([processed[0], processed.at(-1)]).toEqual([read[0].cache, total]);
  expect(processed).toEqual([...new Set(processed)].toSorted((a, b) => a - b));
  const { timings } = frames.at(-2);
  expect(timings).toMatchObject({ cache_n: read[0].cache, prompt_n: total - read[0].cache, predicted_n: 4 });
  expect(timings.prompt_ms).toBeGreaterThanOrEqual(read.at(-1).time_ms - 1);
  expect(frames.indexOf(frames.find((frame) => frame.timings))).toBe(read.length);
});

test("llama-server's routes ask for the key", async () => {
  const read = ["/props", "/slots", "/lora-adapters", "/models"];
  for (const path of read) expect([path, (await fetch(hearth.url + path)).status]).toEqual([path, 401]);
  const written = ["/apply-template", "/tokenize", "/detokenize", "/infill", "/completion", "/completions"];
  for (const path of [...written, "/embedding", "/embeddings", "/rerank", "/reranking", "/chat/completions"]) {
    expect((await fetch(hearth.url + path, { method: "POST", body: "{}" })).status).toBe(401);
  }
});
