import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { abortable } from "../../src/base/abortable.ts";
import { digestOf } from "../../src/library/store/digest.ts";
import { parseName } from "../../src/library/store/name.ts";
import { manifestPath, openStore } from "../../src/library/store/store.ts";
import { addLayer, CHAT_TEMPLATE, putModel, writeTinyGguf } from "../library/fixture.ts";
import { makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeEach(async () => void (harness = await makeHarness()));
afterEach(() => harness.close());

const get = async (path: string) =>
  (await (await harness.call("GET", path)).json()) as { models: Record<string, unknown>[] };
const show = async (body: object) => (await (await harness.post("/api/show", body)).json()) as Record<string, unknown>;

const DETAILS = {
  parent_model: "",
  format: "gguf",
  family: "llama",
  families: ["llama"],
  parameter_size: "128",
  quantization_level: "F32",
};

describe("the list of models", () => {
  test("has all fields, and begins with the model changed last", async () => {
    await putModel(harness.root, "user/new:q8", { modifiedAt: new Date("2100-02-03T04:05:06.789Z") });
    await putModel(harness.root, "old", { modifiedAt: new Date("2001-02-03T04:05:06Z") });
    const { models } = await get("/api/tags");
    expect(models.map((model) => model["name"])).toEqual(["user/new:q8", "m:latest", "old:latest"]);
    const bytes = await Bun.file(manifestPath(harness.root, parseName("user/new:q8"))).bytes();
    expect(models[0]).toEqual({
      name: "user/new:q8",
      model: "user/new:q8",
      modified_at: "2100-02-03T04:05:06.789000000Z",
      size: expect.any(Number),
      digest: digestOf(bytes).slice(7),
      details: { ...DETAILS, context_length: 512, embedding_length: 64 },
      capabilities: ["completion"],
    });
  });

  test("is empty for an empty store", async () => {
    await rm(harness.root, { recursive: true });
    expect(await get("/api/tags")).toEqual({ models: [] });
  });

  test("takes from the file the details that the configuration lacks", async () => {
    await putModel(harness.root, "bare", { config: {}, gguf: { "general.file_type": { u32: 15 } } });
    const bare = (await get("/api/tags")).models.find((model) => model["name"] === "bare:latest");
    expect(bare?.["details"]).toMatchObject({ ...DETAILS, quantization_level: "Q4_K_M" });
  });

  test("has a model whose weights are missing, with its known details", async () => {
    const { paths } = await (await openStore(harness.root)).load("m");
    await rm(paths.model);
    const [model] = (await get("/api/tags")).models;
    expect(model).toMatchObject({ name: "m:latest", details: DETAILS });
    expect(model).not.toHaveProperty("capabilities");
  });

  test("leaves out a broken manifest and logs it", async () => {
    await putModel(harness.root, "bad");
    const path = manifestPath(harness.root, parseName("bad"));
    await writeFile(path, "{");
    expect((await get("/api/tags")).models.map((model) => model["name"])).toEqual(["m:latest"]);
    expect(harness.logs).toContainEqual(expect.objectContaining({ level: "warn", path }));
  });
});

describe("showing a model", () => {
  test("has every field, with the vocabulary emptied", async () => {
    const reply = await show({ model: "M" });
    expect(reply).toMatchObject({
      parameters: 'stop                           "<|end|>"\ntemperature                    0.7',
      template: CHAT_TEMPLATE,
      details: DETAILS,
      model_info: {
        "general.architecture": "llama",
        "general.parameter_count": 128,
        "llama.context_length": 512,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_sections": [],
        "tokenizer.ggml.merges": [],
        "tokenizer.ggml.token_type": [],
        "tokenizer.ggml.tokens": [],
      },
      tensors: [{ name: "token_embd.weight", type: "F32", shape: [64, 2] }],
      capabilities: ["completion"],
      modified_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$/),
    });
    for (const key of ["general.name", "tokenizer.chat_template"])
      expect(reply["model_info"]).not.toHaveProperty([key]);
    for (const key of ["license", "system", "messages", "projector_info"]) expect(reply).not.toHaveProperty(key);
  });

  test("gives whole arrays when asked to", async () => {
    expect((await show({ model: "m", verbose: true }))["model_info"]).toMatchObject({
      "llama.rope.dimension_sections": [1, 2, 3, 4, 5, 6],
      "tokenizer.ggml.merges": ["a b"],
      "tokenizer.ggml.token_type": [1, 1],
      "tokenizer.ggml.tokens": ["a", "b"],
    });
  });

  test("gives whole vocabularies to several clients at once", async () => {
    const words = Array.from({ length: 5_000 }, (_, i) => `wörd ${i}`);
    const scores = Float32Array.from(words, (_, i) => -i / 10);
    await putModel(harness.root, "large", { gguf: { "tokenizer.ggml.tokens": words, "a.scores": scores } });
    const bodies = ["large", "m", "none", "large"].map((model) => ({ model, verbose: true }));
    const [large, small, none, again] = await Promise.all(bodies.map(show));
    expect(large).toEqual(again);
    const info = large?.["model_info"] as Record<string, unknown>; // the next lines check it
    expect(info["tokenizer.ggml.tokens"]).toEqual(words);
    expect(info["a.scores"]).toEqual(words.map((_, i) => Number((-i / 10).toFixed(1))));
    expect(small?.["model_info"]).toMatchObject({ "tokenizer.ggml.tokens": ["a", "b"] });
    expect(none).toEqual({ error: "model 'none:latest' not found" });
    expect((await show({ model: "large" }))["model_info"]).toMatchObject({ "a.scores": [] });
  });

  test("names the fault of a damaged header, and the list still has the model", async () => {
    const { paths } = await (await openStore(harness.root)).load("m");
    const bytes = await Bun.file(paths.model).bytes();
    bytes.set([9, 9], 4); // the version
    await writeFile(paths.model, bytes);
    const response = await harness.post("/api/show", { model: "m" });
    expect(response.status).toBe(500);
    const { error } = (await response.json()) as { error: string };
    expect(error).toStartWith(
      `models/blobs/${basename(paths.model)}: version at byte 4: expected 2 or 3, little-endian, got `,
    );
    expect((await get("/api/tags")).models.map((model) => model["name"])).toEqual(["m:latest"]);
  });

  test("has licences, system message, messages and template from their layers", async () => {
    await putModel(harness.root, "whole", {
      texts: [
        ["template", "{{ .System }} {{ .Prompt }}"],
        ["system", "Be\nbrief."],
        ["license", "MIT"],
        ["license", "Apache"],
        ["messages", '[{"role":"user","content":"hi"}]'],
        ["params", '{"top_k":5}'],
      ],
    });
    const reply = await show({ name: "whole" });
    expect(reply).toMatchObject({
      license: "MIT\nApache",
      template: "{{ .System }} {{ .Prompt }}",
      system: "Be\nbrief.",
      messages: [{ role: "user", content: "hi" }],
    });
    const { model } = (await (await openStore(harness.root)).load("whole")).paths;
    expect(reply["modelfile"]).toBe(
      `# Modelfile generated by "hearth show"
# To build a new Modelfile based on this, replace FROM with:
# FROM whole:latest

FROM ${model}
TEMPLATE {{ .System }} {{ .Prompt }}
SYSTEM "Be
brief."
PARAMETER top_k 5
LICENSE MIT
LICENSE Apache
MESSAGE user hi
`,
    );
  });

  test("has a projector's metadata, and no capability for images if the projector cannot be used", async () => {
    const projector = join(harness.root, "projector.gguf");
    await writeTinyGguf(projector, { "general.architecture": "clip" });
    await putModel(harness.root, "sees");
    await addLayer(harness.root, { name: "sees", kind: "projector", bytes: await Bun.file(projector).bytes() });
    const reply = await show({ model: "sees" });
    expect(reply["capabilities"]).toEqual(["completion"]);
    expect(reply["projector_info"]).toMatchObject({ "general.architecture": "clip" });
  });

  test("prints a TEMPLATE unless it is the template of the file", async () => {
    await putModel(harness.root, "none", { gguf: { "tokenizer.chat_template": false } });
    expect((await show({ model: "none" }))["modelfile"]).toContain("\nTEMPLATE {{ .Prompt }}\n");
    expect((await show({ model: "m" }))["modelfile"]).not.toContain("TEMPLATE");
  });

  test("says if the source of models has a missing model", async () => {
    const sourced = await makeHarness({}, { isOffered: async ({ model }) => model === "there" });
    const said = async (model: string): Promise<unknown> => {
      const response = await sourced.post("/api/show", { model });
      return [response.status, ((await response.json()) as { error: string }).error];
    };
    expect(await said("nowhere")).toEqual([404, "model 'nowhere:latest' not found"]);
    expect(await said("there")).toEqual([
      404,
      "model 'there:latest' not found here: the source of models has it; a pull or its first use installs it",
    ]);
    await sourced.close();
  });

  test("is answered soon for a missing model if the source of models does not answer", async () => {
    const silent = await makeHarness({}, { isOffered: (_, signal) => abortable(new Promise(() => {}), [signal]) });
    const reply = await silent.post("/api/show", { model: "nothere" });
    expect([reply.status, await reply.json()]).toEqual([404, { error: "model 'nothere:latest' not found" }]);
    await silent.close();
  });

  test("has an error if the template does not parse", async () => {
    await putModel(harness.root, "broken", { gguf: { "tokenizer.chat_template": "{% if messages %}" } });
    const reply = await show({ model: "broken" });
    expect(reply).toMatchObject({ template: "{% if messages %}", template_error: expect.stringContaining("template") });
    expect(await show({ model: "m" })).not.toHaveProperty("template_error");
  });

  test("prints a Modelfile that keeps all adapters of a model", async () => {
    await putModel(harness.root, "stacked");
    const bytes = (seed: number): Uint8Array => new Uint8Array(8).fill(seed);
    await addLayer(harness.root, { name: "stacked", kind: "adapter", bytes: bytes(1) });
    const { paths } = await (await openStore(harness.root)).load("stacked");
    expect((await show({ model: "stacked" }))["modelfile"]).toContain(
      `FROM ${paths.model}\nADAPTER ${paths.adapters[0]}\n`,
    );
    await addLayer(harness.root, { name: "stacked", kind: "adapter", bytes: bytes(2) });
    const { modelfile } = await show({ model: "stacked" });
    expect(modelfile).toContain("\nFROM stacked:latest\n"); // includes the adapter
    expect(modelfile).not.toContain("ADAPTER");
  });

  test("echoes another system message and other options", async () => {
    const reply = await show({ model: "m", system: "Other.", options: { top_k: 1 } });
    expect(reply["system"]).toBe("Other.");
    expect(reply["modelfile"]).toContain(
      "SYSTEM Other.\nPARAMETER stop <|end|>\nPARAMETER temperature 0.7\nPARAMETER top_k 1\n",
    );
  });

  test("an embedding model has the capability of embedding only", async () => {
    await putModel(harness.root, "embed", { gguf: { "llama.pooling_type": { u32: 1 } } });
    expect((await show({ model: "embed" }))["capabilities"]).toEqual(["embedding"]);
  });

  test("capabilities come from the template in force", async () => {
    const jinja = "{% if tools %}{{ tools }}{% endif %}<think></think>{{ messages }}";
    await putModel(harness.root, "native", { gguf: { "tokenizer.chat_template": jinja } });
    expect((await show({ model: "native" }))["capabilities"]).toEqual(["tools", "thinking", "completion"]);
    const go = "{{ .Prompt }}{{ .Suffix }}{{ .Tools }}";
    await putModel(harness.root, "layered", { texts: [["template", go]] });
    expect(await show({ model: "layered" })).toMatchObject({
      template: go,
      capabilities: ["completion", "tools", "insert"],
    });
    await putModel(harness.root, "broken", { texts: [["template", "{{ .Prompt "]] });
    expect(await show({ model: "broken" })).toMatchObject({ template: "{{ .Prompt ", capabilities: ["completion"] });
  });

  test("a file that is not GGUF is an error that names it", async () => {
    const { paths } = await (await openStore(harness.root)).load("m");
    await writeFile(paths.model, new Uint8Array(Bun.file(paths.model).size));
    const response = await harness.post("/api/show", { model: "m" });
    expect(response.status).toBe(500);
    expect(((await response.json()) as { error: string }).error).toContain(`models/blobs/${basename(paths.model)}`);
  });
});

describe("the list of models in memory", () => {
  test("has another name of the same weights if the name of a loaded model was deleted", async () => {
    await putModel(harness.root, "loaded-by");
    await harness.call("POST", "/api/copy", { source: "loaded-by", destination: "shares" });
    const { paths } = await (await openStore(harness.root)).load("loaded-by");
    const loaded = { digest: "d", paths, sizeBytes: 1, vramBytes: 0, ctxLen: 8, pid: 1, expiresAt: new Date() };
    harness.runtime.models = [{ ...loaded, name: "loaded-by:latest" }];
    expect((await get("/api/ps")).models[0]!["name"]).toBe("loaded-by:latest");
    await harness.call("DELETE", "/api/delete", { model: "loaded-by" });
    expect((await get("/api/ps")).models[0]!["name"]).not.toBe("loaded-by:latest");
    harness.runtime.models = [];
  });

  const UNKNOWN = expect.objectContaining({ format: "gguf", families: null });
  test("is empty at first", async () => expect(await get("/api/ps")).toEqual({ models: [] }));

  test("has all fields of a loaded model", async () => {
    const { paths } = await (await openStore(harness.root)).load("m");
    const loaded = { name: "m:latest", digest: "d1", paths, sizeBytes: 10, vramBytes: 4, ctxLen: 2048, pid: 1 };
    const placement = [
      { device: "GPU", layers: 3 },
      { device: "CPU", layers: 0, experts: 2 },
    ];
    const streamed = { memory: 5, hits: 3, misses: 1, bytes: 9 };
    const elsewhere = { ...loaded, paths: { model: "/gone", adapters: [], files: [] } };
    harness.runtime.models = [
      { ...loaded, expiresAt: new Date("2026-05-06T07:08:09Z") },
      { ...elsewhere, name: "deleted:latest", expiresAt: new Date("2026-05-06T07:08:00Z"), placement },
      { ...elsewhere, name: "broken:latest", expiresAt: new Date("2026-05-06T07:07:00Z"), streamed },
    ];
    await putModel(harness.root, "broken");
    await writeFile(manifestPath(harness.root, parseName("broken")), "{");
    const { models } = await get("/api/ps");
    expect(models).toEqual([
      {
        name: "m:latest",
        model: "m:latest",
        size: 10,
        digest: "d1",
        details: DETAILS,
        expires_at: "2026-05-06T07:08:09.000000000Z",
        size_vram: 4,
        context_length: 2048,
      },
      expect.objectContaining({ name: "deleted:latest", details: UNKNOWN, placement }),
      expect.objectContaining({
        name: "broken:latest",
        details: UNKNOWN,
        streamed: { memory: 5, hits: 3, misses: 1, bytes_read: 9 },
      }),
    ]);
    expect(await get("/api/system")).toMatchObject({
      divided_models: [{ name: "deleted:latest", placement }],
    });
  });
});
