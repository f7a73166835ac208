/** Routes under llama-server's names, on the real server. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { framesOf } from "../server/harness.ts";
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

const messages = [{ role: "user", content: "Hello! Who are you?" }];

test("a request that names no model means the one in memory, if there is one", async () => {
  expect(await call("/props")).toEqual({ status: 400, body: { error: "model is required" } });
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
  expect(slots[0]).toEqual({ id: 0, model: "hearth:latest", n_ctx: 512, is_processing: false });
  expect((await call("/lora-adapters")).body).toEqual([]);
  const refused = await call("/infill", { input_prefix: "x", input_suffix: "y" });
  expect([refused.status, refused.body.error]).toEqual([400, expect.stringContaining("does not support insert")]);
  const { prompt } = (await call("/apply-template", { messages })).body;
  const shown = await call("/v1/chat/completions", { ...chat, _debug_render_only: true });
  expect(prompt).toBe(shown.body._debug_info.rendered_template);
  const { tokens } = (await call("/tokenize", { content: "Hello there" })).body;
  expect((await call("/detokenize", { tokens })).body.content).toBe("Hello there");
});

test("a stream tells how much of its prompt is read, and how long it took", async () => {
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

test("these routes ask for the key", async () => {
  for (const path of ["/props", "/slots", "/lora-adapters"]) expect((await fetch(hearth.url + path)).status).toBe(401);
  for (const path of ["/apply-template", "/tokenize", "/detokenize", "/infill"]) {
    expect((await fetch(hearth.url + path, { method: "POST", body: "{}" })).status).toBe(401);
  }
});
