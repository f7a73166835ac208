/**
 * The API document's rows for the models of a store: tags, show, copy, delete, ps, and the conventions of all
 * endpoints; one test each, on the real server.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { eventually, ndjson, startHearth, type Hearth } from "../e2e/hearth.ts";
import { variantBytes } from "../e2e/variants.ts";
import { clientOf } from "./client.ts";

setDefaultTimeout(120_000);

/** `general.*`, keys of the architecture, `tokenizer.ggml.*`: dots in every one. */
const DOTTED = /^[\w-]+(\.[\w-]+)+$/;
const ISO_8601 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

let hearth: Hearth;
beforeAll(async () => void (hearth = await startHearth()));
afterAll(() => hearth.stop());
const { call, post, create, upload } = clientOf(() => hearth);

const tags = async (): Promise<any[]> => (await call("GET", "/api/tags")).body.models;
const ps = async (): Promise<any[]> => (await call("GET", "/api/ps")).body.models;
const show = async (body: object): Promise<any> => (await post("/api/show", body)).body;
const item = async (name: string): Promise<any> => (await tags()).find((model) => model.name === name);
const load = (model: string, more: object = {}) => post("/api/generate", { model, prompt: "", ...more });

const DETAILS = {
  parent_model: "",
  format: "gguf",
  family: "llama",
  families: ["llama"],
  parameter_size: "5.8M",
  quantization_level: "Q8_0",
};

describe("Conventions", () => {
  test("names are model:tag with an optional namespace; the tag defaults to latest", async () => {
    for (const destination of ["plain", "tagged:v1", "someone/owned", "someone/owned:v2"]) {
      expect((await post("/api/copy", { source: "hearth", destination })).status).toBe(200);
    }
    const names = (await tags()).map(({ name }) => name);
    const written = ["plain:latest", "tagged:v1", "someone/owned:latest", "someone/owned:v2"];
    expect(names).toEqual(expect.arrayContaining(written));
    for (const [short, long] of [
      ["plain", "plain:latest"],
      ["someone/owned", "someone/owned:latest"],
    ] as const) {
      expect(await show({ model: short })).toEqual(await show({ model: long }));
    }
    expect((await post("/api/show", { model: "tagged" })).status).toBe(404); // another version
    for (const model of ["plain", "tagged:v1", "someone/owned", "someone/owned:v2"]) {
      await call("DELETE", "/api/delete", { model });
    }
  });

  test("durations are integers in nanoseconds", async () => {
    const before = performance.now();
    const { body } = await post("/api/generate", { model: "hearth", prompt: "Hello!", stream: false });
    const tookNs = (performance.now() - before) * 1e6;
    const durations = Object.entries<number>(body).filter(([name]) => name.endsWith("_duration"));
    expect(durations.length).toBe(4);
    for (const [name, value] of durations) expect([name, Number.isSafeInteger(value)]).toEqual([name, true]);
    expect(body.total_duration).toBeLessThanOrEqual(tookNs);
    expect(body.total_duration).toBeGreaterThan(tookNs / 1000); // not microseconds
  });

  test("stream false makes streaming endpoints answer with one JSON object", async () => {
    const messages = [{ role: "user", content: "Hello!" }];
    for (const [path, body] of [
      ["/api/generate", { prompt: "Hello!" }],
      ["/api/chat", { messages }],
      ["/api/create", { model: "one", modelfile: "FROM hearth" }],
    ] as const) {
      const request = { model: "hearth", ...body };
      const streamed = await Array.fromAsync(ndjson(await hearth.post(path, request)));
      expect([path, streamed.length > 1]).toEqual([path, true]);
      const reply = await post(path, { ...request, stream: false });
      expect([path, reply.status, typeof reply.body]).toEqual([path, 200, "object"]);
    }
  });

  test("eval_count / eval_duration · 10⁹ is the rate in tokens per second", async () => {
    const { body } = await post("/api/generate", { model: "hearth", prompt: "Tell me a story.", stream: false });
    const rate = (body.eval_count / body.eval_duration) * 1e9;
    expect(rate).toBeGreaterThan(0.1);
    expect(rate).toBeLessThan(1e6);
  });

  test("errors are objects with a text in `error`", async () => {
    const { body } = await post("/api/show", { model: "nobody" });
    expect(body).toEqual({ error: "model 'nobody:latest' not found" });
  });
});

describe("GET /api/tags", () => {
  test("models: is an array of every model", async () => {
    expect(Object.keys((await call("GET", "/api/tags")).body)).toEqual(["models"]);
    expect(await item("hearth:latest")).toBeDefined();
  });
  test("name: is the model's name with its tag", async () => {
    for (const { name } of await tags()) expect(name).toMatch(/^[^:]+:[^:]+$/);
  });
  test("modified_at: is an ISO 8601 time; the model changed last is listed first", async () => {
    await create({ model: "newer", from: "hearth", system: "Newer." });
    const times = (await tags()).map(({ modified_at }) => modified_at);
    for (const time of times) expect(time).toMatch(ISO_8601);
    expect((await tags())[0].name).toBe("newer:latest");
    expect(times.map(Date.parse)).toEqual(times.map(Date.parse).toSorted((a, b) => b - a));
    expect(Math.abs(Date.parse(times[0]) - Date.now())).toBeLessThan(120_000);
  });
  test("size: is the integer number of bytes of all the model's files", async () => {
    const { size } = await item("hearth:latest");
    expect(Number.isSafeInteger(size)).toBe(true);
    const weights = Bun.file(/^FROM (.*)$/m.exec((await show({ model: "hearth" })).modelfile)![1]!).size;
    expect(size).toBeWithin(weights, weights + 100_000);
  });
  test("digest: is hexadecimal, and equal for equal models", async () => {
    const { digest } = await item("hearth:latest");
    expect(digest).toMatch(/^[0-9a-f]{64}$/);
    await create({ model: "other", from: "hearth", system: "Other." });
    await post("/api/copy", { source: "hearth", destination: "same" });
    expect((await item("same:latest")).digest).toBe(digest);
    expect((await item("other:latest")).digest).not.toBe(digest);
  });
  test("details: has format, family, families, parameter_size and quantization_level", async () => {
    expect((await item("hearth:latest")).details).toMatchObject(DETAILS);
  });
});

describe("POST /api/show", () => {
  test("model: is required, with or without its tag, in any case", async () => {
    expect(await post("/api/show", {})).toMatchObject({ status: 400, body: { error: "model is required" } });
    expect(await show({ model: "HEARTH:latest" })).toEqual(await show({ model: "hearth" }));
  });
  test("modelfile: creates the same model again", async () => {
    await create({ model: "source", modelfile: "FROM hearth\nSYSTEM Be brief.\nPARAMETER top_k 7\nLICENSE MIT" });
    const { modelfile, ...rest } = await show({ model: "source" });
    await create({ model: "again", modelfile });
    const again = await show({ model: "again" });
    expect(again).toMatchObject({ system: "Be brief.", parameters: rest.parameters, template: rest.template });
    expect(again.license.split("\n").at(-1)).toBe("MIT");
  });
  test("parameters: has one parameter per line", async () => {
    await create({ model: "set", from: "hearth", parameters: { top_k: 7, stop: ["a b", "c"], temperature: 0.5 } });
    const { parameters } = await show({ model: "set" });
    expect(parameters).toBeString();
    const lines = parameters.split("\n").map((line: string) => line.split(/ {2,}/));
    expect(lines).toEqual(
      expect.arrayContaining([
        ["top_k", "7"],
        ["temperature", "0.5"],
        ["stop", '"a b"'],
        ["stop", '"c"'],
      ]),
    );
  });
  test("template: is the template in use", async () => {
    expect((await show({ model: "hearth" })).template).toContain("<|im_start|>");
    const message = `{{ if eq .Role "tool" }}A: {{ end }}{{ .Content }}{{ .ToolCalls }}`;
    // has the same capabilities as the file's own
    const template = `{{ .Tools }}{{ range .Messages }}${message}{{ end }}`;
    await create({ model: "go", from: "hearth", template });
    expect((await show({ model: "go" })).template).toBe(template);
  });
  test("details: equals the list's details, with parent_model", async () => {
    expect((await show({ model: "hearth" })).details).toEqual(DETAILS);
    await create({ model: "child", from: "hearth", system: "Child." });
    expect((await show({ model: "child" })).details.parent_model).toBeString();
  });
  test("model_info: maps dotted keys to numbers, texts, booleans or arrays", async () => {
    const { model_info: info } = await show({ model: "hearth" });
    expect(info).toMatchObject({
      "general.architecture": "llama",
      "general.parameter_count": 5770496,
      "llama.context_length": 2048,
      "tokenizer.ggml.model": "gpt2",
    });
    for (const [key, value] of Object.entries(info)) {
      expect(key).toMatch(DOTTED);
      expect([key, Array.isArray(value) ? "array" : typeof value]).toEqual([
        key,
        expect.stringMatching(/^(number|string|boolean|array)$/),
      ]);
    }
  });
  test("verbose: includes merges, token_type and tokens, which are empty arrays otherwise", async () => {
    const names = ["merges", "token_type", "tokens"].map((name) => `tokenizer.ggml.${name}`);
    for (const more of [{}, { verbose: false }]) {
      const { model_info: info } = await show({ model: "hearth", ...more });
      expect(names.map((name) => info[name])).toEqual([[], [], []]);
    }
    const { model_info: info } = await show({ model: "hearth", verbose: true });
    expect(names.map((name) => info[name].length)).toEqual([expect.any(Number), 4096, 4096]);
    expect(info["tokenizer.ggml.merges"].length).toBeGreaterThan(1000);
  });
});

describe("POST /api/copy", () => {
  test("source, destination: the model gets a second name", async () => {
    const reply = await post("/api/copy", { source: "hearth", destination: "backup" });
    expect([reply.status, reply.text]).toEqual([200, ""]);
    const { name: _, model: __, modified_at: ___, ...copy } = await item("backup:latest");
    expect(await item("hearth:latest")).toMatchObject(copy);
    expect((await load("backup", { stream: false })).body).toMatchObject({ model: "backup", done: true });
  });
  test("404 if the source does not exist", async () => {
    const reply = await post("/api/copy", { source: "nobody", destination: "x" });
    expect([reply.status, reply.body]).toEqual([404, { error: 'model "nobody" not found' }]);
    expect(await item("x:latest")).toBeUndefined();
  });
});

describe("DELETE /api/delete", () => {
  test("model: the model and its data are removed", async () => {
    const digest = await upload(variantBytes("d"));
    const path = join(hearth.home, ".hearth/models/blobs", digest.replace(":", "-"));
    await create({ model: "doomed", files: { "model.gguf": digest } });
    expect([existsSync(path), (await item("doomed:latest")).name]).toEqual([true, "doomed:latest"]);
    const reply = await call("DELETE", "/api/delete", { model: "doomed" });
    expect([reply.status, reply.text]).toEqual([200, ""]);
    expect([existsSync(path), await item("doomed:latest")]).toEqual([false, undefined]);
    expect((await load("doomed")).status).toBe(404);
  });
  test("404 if the model does not exist", async () => {
    const reply = await call("DELETE", "/api/delete", { model: "nobody" });
    expect([reply.status, reply.body]).toEqual([404, { error: "model 'nobody' not found" }]);
  });
});

describe("GET /api/ps", () => {
  beforeEach(async () => {
    for (const { name } of await ps()) await load(name, { keep_alive: 0 });
    expect(await eventually(async () => (await ps()).length === 0, 60_000)).toBe(true);
  });

  test("models: is empty until a model is loaded", async () => {
    expect((await call("GET", "/api/ps")).body).toEqual({ models: [] });
    await load("hearth");
    expect((await ps()).length).toBe(1);
  });
  test("name, model, digest: equal the list's; details has an empty parent_model", async () => {
    await load("hearth");
    const { name, digest } = await item("hearth:latest");
    expect((await ps())[0]).toMatchObject({ name, model: name, digest, details: DETAILS });
  });
  test("size and size_vram: are integer numbers of bytes", async () => {
    await load("hearth");
    const [{ size, size_vram }] = await ps();
    expect([Number.isSafeInteger(size), Number.isSafeInteger(size_vram)]).toEqual([true, true]);
    expect(size).toBeGreaterThan((await item("hearth:latest")).size);
    expect(size_vram).toBeWithin(0, size + 1);
  });
  test("expires_at: is the ISO 8601 time at which the model is unloaded", async () => {
    await load("hearth", { keep_alive: "1h" });
    const [{ expires_at }] = await ps();
    expect(expires_at).toMatch(ISO_8601);
    expect((Date.parse(expires_at) - Date.now()) / 1000).toBeWithin(3000, 3600.1);
  });
});
