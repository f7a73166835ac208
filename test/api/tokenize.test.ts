/** `POST /api/tokenize` and `POST /api/detokenize` on the real server with the embedded model. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { startHearth, type Hearth } from "../e2e/hearth.ts";

setDefaultTimeout(120_000);

let hearth: Hearth;
beforeAll(async () => void (hearth = await startHearth()));
afterAll(() => hearth.stop());

async function post(path: string, body: object): Promise<{ status: number; body: any }> {
  const response = await hearth.post(path, { model: "hearth", ...body });
  return { status: response.status, body: await response.json() };
}
const tokenize = (body: object) => post("/api/tokenize", body);
const detokenize = (body: object) => post("/api/detokenize", body);

test("POST /api/tokenize · content: gets the ids of a text and the durations", async () => {
  const { status, body } = await tokenize({ content: "Hello there." });
  expect(status).toBe(200);
  expect(Object.keys(body)).toEqual(["model", "tokens", "total_duration", "load_duration"]);
  expect(body.model).toBe("hearth");
  expect(body.tokens.length).toBeGreaterThan(1);
  expect(body.total_duration).toBeGreaterThanOrEqual(body.load_duration);
  for (const name of ["text", "prompt"]) {
    expect((await tokenize({ [name]: "Hello there." })).body.tokens).toEqual(body.tokens);
  }
  expect((await tokenize({ content: "" })).body.tokens).toEqual([]);
});

test("POST /api/tokenize · content: a missing value or another type gets 400", async () => {
  expect(await tokenize({})).toEqual({ status: 400, body: { error: "content is required" } });
  const { status, body } = await tokenize({ content: ["a"] });
  expect([status, body.error]).toEqual([400, "content: expected a string, got an array"]);
  const long = await tokenize({ content: "a".repeat(2 ** 21 + 1) });
  expect([long.status, long.body.error]).toEqual([413, "content: expected at most 2097152 characters, got 2097153"]);
});

test("POST /api/tokenize · parse_special: reads markup as one token instead of as text", async () => {
  const markup = "<|im_end|>";
  const [as, plain] = await Promise.all(
    [true, false].map((parse_special) => tokenize({ content: markup, parse_special })),
  );
  expect(as!.body.tokens).toHaveLength(1);
  expect(plain!.body.tokens.length).toBeGreaterThan(1);
  expect((await tokenize({ content: markup })).body.tokens).toEqual(as!.body.tokens);
  expect((await detokenize({ tokens: as!.body.tokens })).body.content).toBe(markup);
});

test("POST /api/tokenize · with_pieces: adds each token's text, or its bytes if they are not text", async () => {
  const { body } = await tokenize({ content: "fox 🦊", with_pieces: true });
  const pieces: (string | number[])[] = body.tokens.map(({ piece }: any) => piece);
  const bytes = pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : Buffer.from(piece)));
  expect(Buffer.concat(bytes).toString()).toBe("fox 🦊");
  expect(pieces.some((piece) => Array.isArray(piece))).toBe(true);
  const ids = (await tokenize({ content: "fox 🦊" })).body.tokens;
  expect(body.tokens.map(({ id }: any) => id)).toEqual(ids);
});

test("POST /api/tokenize · add_special: adds the model's own tokens around a prompt, by default none", async () => {
  const [bare, whole] = await Promise.all([
    tokenize({ content: "Hello" }),
    tokenize({ content: "Hello", add_special: true }),
  ]);
  const info = (await post("/api/show", {})).body.model_info;
  const added = info["tokenizer.ggml.add_bos_token"] === true ? [info["tokenizer.ggml.bos_token_id"]] : [];
  expect(whole.body.tokens).toEqual([...added, ...bare.body.tokens]);
});

test("POST /api/detokenize restores any text from its ids", async () => {
  const texts = fc.array(fc.string({ unit: "grapheme", maxLength: 40 }), { minLength: 1, maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(texts, fc.boolean(), async (parts, parse_special) => {
      const content = parts.join(" <|im_end|>");
      const { tokens } = (await tokenize({ content, parse_special })).body;
      expect((await detokenize({ tokens })).body.content).toBe(content.toWellFormed());
    }),
    { seed: 17, numRuns: 40 },
  );
});

test("POST /api/detokenize · tokens: an incomplete character at the end becomes the replacement character", async () => {
  const { tokens } = (await tokenize({ content: "🦊", with_pieces: true })).body;
  const halves = tokens.filter(({ piece }: any) => Array.isArray(piece)).map(({ id }: any) => id);
  expect(halves.length).toBeGreaterThan(0);
  expect((await detokenize({ tokens: [halves[0]] })).body.content).toBe("\uFFFD");
});

test("POST /api/detokenize · tokens: an invalid id gets 400 with its position", async () => {
  for (const bad of [-1, 2 ** 31, 2 ** 40]) {
    const { status, body } = await detokenize({ tokens: [1, bad] });
    expect([status, body.error]).toEqual([
      400,
      expect.stringMatching(new RegExp(`^tokens\\[1\\]: expected an id from 0 to \\d+, got ${bad}$`)),
    ]);
  }
  expect((await detokenize({ tokens: [0.5] })).status).toBe(400);
  expect(await detokenize({})).toEqual({ status: 400, body: { error: "tokens is required" } });
  expect((await detokenize({ tokens: [] })).body.content).toBe("");
});

test("both · model: an unknown model gets 404, and a missing one 400", async () => {
  for (const path of ["/api/tokenize", "/api/detokenize"]) {
    const body = { content: "a", tokens: [1] };
    expect(await post(path, { ...body, model: "nobody" })).toEqual({
      status: 404,
      body: { error: "model 'nobody' not found" },
    });
    expect(await post(path, { ...body, model: "" })).toEqual({ status: 400, body: { error: "model is required" } });
  }
});

test("both · keep_alive: sets how long the model stays loaded", async () => {
  const left = async (): Promise<number> => {
    const { models } = (await (await fetch(`${hearth.url}/api/ps`)).json()) as { models: { expires_at: string }[] };
    return models[0] ? Date.parse(models[0].expires_at) - Date.now() : 0;
  };
  await tokenize({ content: "a", keep_alive: "3h" });
  expect(await left()).toBeGreaterThan(2.9 * 3600_000);
  await detokenize({ tokens: [1], keep_alive: "10h" });
  expect(await left()).toBeGreaterThan(9.9 * 3600_000);
  expect((await tokenize({ content: "a", keep_alive: "soon" })).status).toBe(400);
});
