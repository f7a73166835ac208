/** Routes under llama-server's names, on the real server. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
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
  const { prompt } = (await call("/apply-template", { messages })).body;
  const shown = await call("/v1/chat/completions", { ...chat, _debug_render_only: true });
  expect(prompt).toBe(shown.body._debug_info.rendered_template);
  const { tokens } = (await call("/tokenize", { content: "Hello there" })).body;
  expect((await call("/detokenize", { tokens })).body.content).toBe("Hello there");
});

test("these routes ask for the key", async () => {
  for (const path of ["/props", "/slots", "/lora-adapters"]) expect((await fetch(hearth.url + path)).status).toBe(401);
  for (const path of ["/apply-template", "/tokenize", "/detokenize"]) {
    expect((await fetch(hearth.url + path, { method: "POST", body: "{}" })).status).toBe(401);
  }
});
