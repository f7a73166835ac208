/**
 * `POST /api/generate` · `suffix`, on the real server with a model that has fill-in-the-middle markers: the embedded
 * one, with three of its tokens renamed to such markers.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { resolve } from "node:path";
import { readHeader } from "../../src/engine/formats/files/read-header.ts";
import { startHearth, type Hearth } from "../e2e/hearth.ts";

setDefaultTimeout(120_000);

const EMBEDDED = resolve(import.meta.dir, "../../models/hearth/hearth.gguf");
const MARKERS = ["<PRE>", "<SUF>", "<MID>"];

let hearth: Hearth;
let ids: number[];
beforeAll(async () => {
  hearth = await startHearth();
  const made = await withMarkers();
  ids = made.ids;
  const digest = `sha256:${new Bun.CryptoHasher("sha256").update(made.bytes).digest("hex")}`;
  const blob = await fetch(`${hearth.url}/api/blobs/${digest}`, { method: "POST", body: made.bytes });
  expect(blob.status).toBe(201);
  const create = await hearth.post("/api/create", { model: "fill", files: { "fill.gguf": digest }, stream: false });
  expect([create.status, await create.json()]).toEqual([200, { status: "success" }]);
});
afterAll(() => hearth.stop());

/** The embedded model with other spellings for three pieces of five bytes. */
async function withMarkers(): Promise<{ bytes: Buffer; ids: number[] }> {
  const { metadata } = await readHeader(EMBEDDED);
  const pieces = metadata.get("tokenizer.ggml.tokens") as string[];
  const places = pieces.flatMap((piece, id) => (/^[a-z]{5}$/.test(piece) ? [{ piece, id }] : [])).slice(-3);
  const bytes = Buffer.from(await Bun.file(EMBEDDED).arrayBuffer());
  for (const [i, { piece }] of places.entries()) {
    const stored = Buffer.concat([Buffer.from(BigUint64Array.of(5n).buffer), Buffer.from(piece)]);
    bytes.write(MARKERS[i]!, bytes.indexOf(stored) + 8);
  }
  return { bytes, ids: places.map(({ id }) => id) };
}

const generate = async (body: object) => {
  const response = await hearth.post("/api/generate", { stream: false, ...body });
  return { status: response.status, body: (await response.json()) as any };
};
const encode = async (content: string): Promise<number[]> =>
  ((await (await hearth.post("/api/tokenize", { model: "fill", content, parse_special: false })).json()) as any).tokens;

test("POST /api/generate · suffix: the prompt has both texts between the model's markers", async () => {
  const options = { num_predict: 4, temperature: 0 };
  const { status, body } = await generate({ model: "fill", prompt: "one ", suffix: " three", options });
  expect(status).toBe(200);
  const [pre, suf, mid] = ids;
  const read = [pre, ...(await encode("one ")), suf, ...(await encode(" three")), mid];
  const bos = body.context[0] === pre ? [] : [body.context[0]];
  expect(body.context.slice(0, bos.length + read.length)).toEqual([...bos, ...read]);
  expect(body.prompt_eval_count).toBe(bos.length + read.length);
  expect(body.eval_count).toBe(body.done_reason === "length" ? 4 : body.context.length - bos.length - read.length);
});

test("POST /api/generate · suffix: texts longer than the context lose their outer ends, and the answer reports it", async () => {
  const options = { num_predict: 2, temperature: 0, num_ctx: 64 };
  const long = { model: "fill", prompt: "x ".repeat(200), suffix: " y".repeat(200), options };
  const { status, body } = await generate(long);
  expect([status, body.truncated]).toEqual([200, true]);
  const [pre, suf, mid] = ids;
  expect(body.context.filter((id: number) => [pre, suf, mid].includes(id)).slice(0, 3)).toEqual([pre, suf, mid]);
  const refused = await generate({ ...long, truncate: false });
  expect([refused.status, refused.body.error]).toEqual([
    400,
    expect.stringContaining("longer than the context length"),
  ]);
});

test("POST /api/show and GET /api/tags · capabilities: contain insert if the model has the markers", async () => {
  const show = async (model: string) =>
    ((await (await hearth.post("/api/show", { model })).json()) as any).capabilities;
  expect(await show("fill")).toContain("insert");
  expect(await show("hearth")).not.toContain("insert");
  const { models } = (await (await fetch(`${hearth.url}/api/tags`)).json()) as any;
  const listed = Object.fromEntries(models.map((model: any) => [model.name, model.capabilities.includes("insert")]));
  expect(listed).toEqual({ "fill:latest": true, "hearth:latest": false });
});

test("POST /api/generate · suffix: gets 400 if the model has neither the markers nor a template with a suffix", async () => {
  expect(await generate({ model: "hearth", prompt: "one ", suffix: " three" })).toEqual({
    status: 400,
    body: { error: "registry.ollama.ai/library/hearth:latest does not support insert" },
  });
});

test("POST /api/generate · suffix: a template with a suffix is used", async () => {
  const template = "{{ .Prompt }}[gap]{{ .Suffix }}";
  const options = { num_predict: 1, temperature: 0 };
  const { body } = await generate({ model: "hearth", prompt: "one", suffix: "three", template, options });
  const response = await hearth.post("/api/tokenize", { model: "hearth", content: "one[gap]three", add_special: true });
  expect(body.prompt_eval_count).toBe(((await response.json()) as any).tokens.length);
});
