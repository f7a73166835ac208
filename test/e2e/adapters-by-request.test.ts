/**
 * Adapters over one base in one runner: every dialect's way to name one, several at once with the text that each has
 * alone, and requests that are refused.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { resolve } from "node:path";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { digestOf } from "../../src/library/store/digest.ts";
import { makeAdapter, shapesOf } from "../engine/architectures/adapters.ts";
import { encodeGguf, type MemoryModel } from "../engine/formats/gguf/fixture.ts";
import { eventually, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

const EMBEDDED = resolve(import.meta.dir, "../../models/hearth/hearth.gguf");
const NAMES = ["ann", "bob", "cat"] as const;
/** A model whose adapter changes the embedding, which rows of a run cannot choose. */
const APART = "dan";

let hearth: Hearth;
beforeAll(async () => {
  hearth = await startHearth({ env: { HEARTH_NUM_PARALLEL: "4" } });
  const gguf = openGguf(EMBEDDED);
  for (const [i, name] of [...NAMES, APART].entries()) {
    const targets = name === APART ? /token_embd|attn|ffn/ : /attn|ffn/;
    const options = { rank: name === "cat" ? 4 : 8, alpha: 8, seed: 1 + i, targets };
    const bytes = new Uint8Array(encodeGguf(makeAdapter(shapesOf(gguf), options) as MemoryModel)); // in memory
    const digest = digestOf(bytes);
    await fetch(`${hearth.url}/api/blobs/${digest}`, { method: "POST", body: bytes });
    await hearth.post("/api/create", { model: name, from: "hearth", adapters: { "a.gguf": digest }, stream: false });
  }
  gguf.close();
});
afterAll(() => hearth.stop());

type Json = Record<string, any>;
const jsonOf = async (reply: Promise<Response>): Promise<Json> => (await reply).json() as Promise<Json>;
const get = (path: string): Promise<Json> => jsonOf(fetch(hearth.url + path));

const QUESTION = "Tell me a long story about a fox, a river, and the old mill behind the hill.";

/** An answer in the OpenAI API. */
async function say(model: string, more: Json = {}): Promise<string> {
  const messages = [{ role: "user", content: QUESTION }];
  const body = { model, messages, temperature: 0, max_tokens: 24, ...more };
  const { choices, error } = await jsonOf(hearth.post("/v1/chat/completions", body));
  if (error) throw new Error(error.message);
  return choices[0].message.content;
}

const lora = (...list: readonly (readonly [id: number | string, scale: number])[]): Json => {
  return { lora: list.map(([id, scale]) => (typeof id === "number" ? { id, scale } : { name: id, scale })) };
};

const loadedNames = async (): Promise<string[]> =>
  (await get("/api/ps"))["models"].map(({ name }: Json) => name.replace(":latest", "")).sort();
const loads = async (): Promise<number> => {
  const text = await (await fetch(`${hearth.url}/metrics`)).text();
  return Number(/^hearth_model_events_total\{event="load"\} (\d+)/m.exec(text)?.[1] ?? NaN);
};

test("models with adapters share one runner in every API, and each gives its own answer", async () => {
  const alone: Record<string, string> = { hearth: await say("hearth") };
  const before = await loads();
  for (const name of NAMES) alone[name] = await say(name);
  expect(new Set(Object.values(alone)).size).toBe(4);
  expect(await loadedNames()).toEqual(expect.arrayContaining(["ann", "bob", "cat", "hearth"]));

  // All at once, twice, so that each may continue from another one's prefix.
  const names = [...NAMES, "hearth", ...NAMES, "hearth"];
  const together = await Promise.all(names.map((name) => say(name)));
  expect(together).toEqual(names.map((name) => alone[name]!));
  // One more, for the model that cannot share the runner
  expect((await get("/health"))["models"].loaded).toBeLessThanOrEqual(2);
  expect(await loads()).toBe(before);

  const native = await jsonOf(
    hearth.post("/api/chat", {
      model: "bob",
      messages: [{ role: "user", content: QUESTION }],
      stream: false,
      options: { temperature: 0, num_predict: 24 },
    }),
  );
  expect(native["message"].content).toBe(alone["bob"]!);
  const anthropic = await jsonOf(
    hearth.post("/v1/messages", {
      model: "cat",
      messages: [{ role: "user", content: QUESTION }],
      max_tokens: 24,
      temperature: 0,
    }),
  );
  expect(anthropic["content"][0].text.trim()).toBe(alone["cat"]!.trim());
});

test("/v1/models names the parent of a model with an adapter", async () => {
  const { data } = await get("/v1/models");
  const found = Object.fromEntries(data.map(({ id, parent, root }: Json) => [id, [parent, root]]));
  expect(found["ann:latest"]).toEqual(["hearth:latest", "ann:latest"]);
  expect(found["hearth:latest"]).toEqual([undefined, undefined]);
  expect(await get("/v1/models/bob")).toMatchObject({ id: "bob", parent: "hearth:latest", root: "bob" });
});

describe("lora", () => {
  test("selects adapters by number or name, with a scale, in place of the model's own", async () => {
    const list = (await get("/lora-adapters?model=hearth")) as unknown as Json[];
    expect(list.slice(0, 4).map(({ id, name, scale }) => [id, name, scale])).toEqual([
      [0, "ann:latest", 0],
      [1, "bob:latest", 0],
      [2, "cat:latest", 0],
      [3, "dan:latest", 0],
    ]);
    const [hearths, anns, bobs] = [await say("hearth"), await say("ann"), await say("bob")];
    const before = await loads();
    expect(await say("hearth", lora([1, 1]))).toBe(bobs);
    expect(await say("hearth", lora(["ann", 1], [1, 0]))).toBe(anns);
    expect(await say("ann", lora(["bob:latest", 1]))).toBe(bobs);
    expect(await say("ann", lora([0, 0]))).toBe(hearths);
    expect(await say("ann", lora())).toBe(hearths);
    const others = [lora([0, 0.5]), lora([0, -1]), lora([0, 1], [1, 1]), lora([0, 1], [1, 1], [2, 0.25])];
    const answers: string[] = [];
    for (const more of others) answers.push(await say("hearth", more));
    expect(new Set([hearths, anns, bobs, ...answers]).size).toBe(3 + others.length);
    expect(await Promise.all(others.map((more) => say("hearth", more)))).toEqual(answers);
    expect(await loads()).toBe(before);
  });

  test("is refused with the name of the field that is wrong", async () => {
    const refusal = (more: Json): Promise<string> =>
      say("hearth", more).then(
        () => "none",
        (error) => error.message,
      );
    expect(await refusal(lora([7, 1]))).toContain("lora: no adapter 7 over the base of 'hearth:latest': expected 0 to");
    expect(await refusal(lora(["hearth", 1]))).toContain('no adapter "hearth"');
    expect(await refusal(lora([0, 1e300]))).toContain("adapter scale: expected -100 to 100, got 1e+300");
    expect(await refusal(lora([0, 1], ["ann", 1]))).toContain("adapters: expected each one once");
    expect(await refusal({ lora: [{ id: 0 }] })).toContain("lora[0].scale: expected a number, got nothing");
    expect(await refusal({ lora: [{ scale: 1 }] })).toContain("lora[0]: expected an id or a name, got neither");
    expect(await refusal({ lora: [{ id: 0.5, scale: 1 }] })).toContain("lora[0].id: expected a number");
    expect(await refusal({ lora: { id: 0 } })).toContain("lora");
    expect(await refusal(lora(["dan", 1]))).toContain("it changes weights that are shared by all rows of a step");
    const anns = await say("ann");
    const wild = say("hearth", lora([0, 100], [1, -100])).catch(String);
    expect(await Promise.all([say("ann"), say("ann")])).toEqual([anns, anns]);
    await wild;
  });

  test("POST /lora-adapters sets the adapters of requests that name none", async () => {
    const [hearths, bobs] = [await say("hearth"), await say("bob")];
    const post = (model: string, list: unknown): Promise<Json> =>
      jsonOf(hearth.post(`/lora-adapters?model=${model}`, list as object));
    expect(await post("hearth", [{ id: 1, scale: 1 }])).toEqual({ success: true });
    const list = (await get("/lora-adapters?model=hearth")) as unknown as Json[];
    expect(list.slice(0, 4).map(({ scale }) => scale)).toEqual([0, 1, 0, 0]);
    expect(await say("hearth")).toBe(bobs);
    expect(await say("hearth", lora())).toBe(hearths);
    expect(await post("hearth", [{ id: 9, scale: 1 }])).toMatchObject({
      error: { message: expect.stringContaining("no adapter 9") },
    });
    expect(await post("hearth", [])).toEqual({ success: true });
    expect(await say("hearth")).toBe(hearths);
  });
});

test("a model whose adapter cannot be selected by a request has a runner of its own", async () => {
  const hearths = await say("hearth");
  await hearth.post("/api/generate", { model: APART, keep_alive: 0 });
  const before = await loads();
  const dans = await say(APART);
  expect(dans).not.toBe(hearths);
  expect(await say("hearth")).toBe(hearths);
  expect(await say(APART)).toBe(dans);
  expect(await loads()).toBe(before + 1);
});

test("a model that is created later joins the shared runner; a cancelled request does not end the others", async () => {
  const anns = await say("ann");
  const gguf = openGguf(EMBEDDED);
  const options = { rank: 8, alpha: 16, seed: 7, targets: /attn|ffn/ };
  const bytes = new Uint8Array(encodeGguf(makeAdapter(shapesOf(gguf), options) as MemoryModel)); // in memory
  gguf.close();
  const digest = digestOf(bytes);
  await fetch(`${hearth.url}/api/blobs/${digest}`, { method: "POST", body: bytes });
  await hearth.post("/api/create", { model: "eve", from: "hearth", adapters: { "a.gguf": digest }, stream: false });
  const eves = await say("eve");
  const before = await loads();
  const abort = new AbortController();
  const left = fetch(`${hearth.url}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ model: "bob", messages: [{ role: "user", content: QUESTION }], max_tokens: 400 }),
    signal: abort.signal,
  }).catch(() => undefined);
  const answers = Promise.all([say("eve"), say("ann"), say("eve")]);
  setTimeout(() => abort.abort(), 30);
  expect(await answers).toEqual([eves, anns, eves]);
  await left;
  expect(await loads()).toBe(before);

  await hearth.post("/api/generate", { model: "eve", keep_alive: 0 });
  expect(await eventually(async () => !(await loadedNames()).includes("eve"))).toBe(true);
  expect(await say("ann")).toBe(anns);
});
