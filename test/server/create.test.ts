import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { blobPath, writeBlob } from "../../src/library/store/blobs.ts";
import { openStore } from "../../src/library/store/store.ts";
import { writeTinyGguf } from "../library/fixture.ts";
import { linesOf, makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
let digest: string;
beforeEach(async () => {
  harness = await makeHarness();
  const path = join(harness.root, "tiny.gguf");
  await writeTinyGguf(path);
  ({ digest } = await writeBlob(harness.root, await Bun.file(path).bytes()));
});
afterEach(() => harness.close());

const digestOfNothing = `sha256:${"0".repeat(64)}`;
const create = (body: unknown) => harness.post("/api/create", body);
const load = async (name = "new") => (await openStore(harness.root)).load(name);
const sha = expect.stringMatching(/ sha256:[0-9a-f]{64}$/);

describe("streaming", () => {
  test("a Modelfile gives the steps that the API documents, as NDJSON", async () => {
    const response = await create({ model: "new", modelfile: "FROM m\nSYSTEM You are a pirate." });
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    const steps = await linesOf(response);
    expect(steps.map((step) => String(step["status"]).replace(/sha256:[0-9a-f]{64}/, "<digest>"))).toEqual([
      "reading model metadata",
      "creating system layer",
      "using already created layer <digest>",
      "using already created layer <digest>",
      "writing layer <digest>",
      "writing layer <digest>",
      "writing manifest",
      "success",
    ]);
    for (const step of steps) expect(Object.keys(step)).toEqual(["status"]);
    expect((await load()).system).toBe("You are a pirate.");
  });

  test("fields give a line per file and per layer", async () => {
    const body = { model: "new", files: { "x.gguf": digest }, system: "S", parameters: { top_k: 3, stop: null } };
    expect(await linesOf(await create(body))).toEqual([
      { status: "parsing GGUF" },
      { status: `using existing layer ${digest}` },
      { status: sha },
      { status: sha },
      { status: "writing manifest" },
      { status: "success" },
    ]);
    expect(await load()).toMatchObject({ system: "S", parameters: { top_k: 3 } });
  });

  test("an error after the first line is the last line", async () => {
    const { digest: text } = await writeBlob(harness.root, new TextEncoder().encode("no model"));
    const response = await create({ model: "new", files: { "x.gguf": text } });
    expect(response.status).toBe(200);
    expect(await linesOf(response)).toEqual([
      { status: "parsing GGUF" },
      { error: "supplied file was not in GGUF format" },
    ]);
  });
});

test("without streaming, the answer is only the last step", async () => {
  for (const body of [{ from: "m" }, { modelfile: "FROM m" }, { files: { "a/b.gguf": digest } }]) {
    const response = await create({ model: "new", stream: false, ...body });
    expect(response.headers.get("content-type")).toStartWith("application/json");
    expect(await response.json()).toEqual({ status: "success" });
  }
});

test("every field of a request reaches the created model", async () => {
  const body = {
    name: "user/New:1",
    from: "M",
    template: "{{ .System }} {{ .Prompt }}",
    license: ["MIT", "Apache"],
    system: "Be brief.",
    parameters: { temperature: 0.2, stop: ["END"] },
    messages: [
      { role: "User", content: "hi" },
      { role: "assistant", content: "hello" },
    ],
    renderer: "glm-4.7",
    parser: "glm-ocr",
    requires: "0.1.0",
    info: {
      capabilities: ["tools"],
      model_family: "fam",
      quantization_level: "Q1",
      parameter_size: "9B",
      context_length: 7,
    },
    stream: false,
  };
  expect((await create(body)).status).toBe(200);
  expect(await load("user/new:1")).toMatchObject({
    displayName: "user/New:1",
    template: body.template,
    licenses: body.license,
    system: body.system,
    parameters: { temperature: 0.2, stop: ["END"] },
    messages: [{ role: "user", content: "hi" }, body.messages[1]],
    config: { model_family: "fam", file_type: "Q1", model_type: "9B", context_length: 7, capabilities: ["tools"] },
  });
  const shown = (await (await harness.post("/api/show", { model: "user/new:1" })).json()) as Record<string, unknown>;
  expect(shown["modelfile"]).toContain("\nRENDERER glm-4.7\nPARSER glm-ocr\nREQUIRES 0.1.0\n");
  expect(shown).toMatchObject({
    license: "MIT\nApache",
    requires: "0.1.0",
    system: "Be brief.",
    details: { parent_model: "m:latest" },
  });
});

test("a null parameter keeps the value of the base", async () => {
  await create({ model: "new", from: "m", parameters: { stop: null, top_k: 1 }, stream: false });
  expect((await load()).parameters).toEqual({ stop: ["<|end|>"], temperature: 0.7, top_k: 1 });
});

test("a single licence may be a string", async () => {
  await create({ model: "new", from: "m", license: "MIT", stream: false });
  expect((await load()).licenses).toEqual(["MIT"]);
});

test("FROM accepts the path that an upload answers with", async () => {
  const { url } = harness.listen();
  const uploaded = await fetch(`${url}/api/blobs/${digest}`, { method: "POST", body: "" });
  const response = await create({ model: "new", modelfile: `FROM ${await uploaded.text()}`, stream: false });
  expect(await response.json()).toEqual({ status: "success" });
  expect((await load()).paths.model).toBe(blobPath(harness.root, digest as never));
});

const X = "a".repeat(64);

describe("an invalid request creates no model", () => {
  test.each<[unknown, number, string]>([
    [undefined, 400, "missing request body"],
    [{ model: "new" }, 400, "neither 'from' or 'files' was specified"],
    [{ model: "new", from: "" }, 400, "neither 'from' or 'files' was specified"],
    [{ model: "new", files: {} }, 400, "no files provided to convert"],
    [{ from: "m" }, 400, "invalid model name"],
    [{ model: "", from: "m" }, 400, "invalid model name"],
    [{ model: "a b", from: "m" }, 400, "invalid model name"],
    [{ model: "../new", from: "m" }, 400, "invalid model name"],
    [{ model: "new:../../x", modelfile: "FROM m" }, 400, "invalid model name"],
    [{ model: "new", from: "a b" }, 400, "invalid model name"],
    [{ model: "new", from: "../m" }, 400, "invalid model name"],
    [{ model: "new", from: "nope" }, 500, "registry.ollama.ai: not here"], // it would be pulled
    [{ model: "new", modelfile: "FROM nope" }, 500, "registry.ollama.ai: not here"],
    [{ model: "new", modelfile: "SYSTEM x" }, 400, "no FROM line"],
    [{ model: "new", modelfile: "FROM m\nPARAMETER nope 1" }, 400, "(line 2): unknown parameter 'nope'"],
    [
      { model: "new", modelfile: "FROM m\nPARAMETER top_k x" },
      400,
      "(line 2): PARAMETER top_k: invalid int value [x]: expected a whole number",
    ],
    [{ model: "new", from: "m", template: "{{ .Prompt" }, 400, expect.stringMatching(/^template error: /) as never],
    [{ model: "new", from: "m", parameters: { top_k: "x" } }, 400, 'option "top_k" must be of type integer'],
    [{ model: "new", from: "m", license: 7 }, 400, "license must be a string or an array of strings"],
    [{ model: "new", from: "m", info: { model_family: 1 } }, 400, 'info field "model_family" must be a string'],
    [{ model: "new", from: "m", info: { context_length: "1" } }, 400, 'info field "context_length" must be a number'],
    [
      { model: "new", from: "m", info: { context_length: -1 } },
      400,
      'info field "context_length" must be a non-negative integer',
    ],
    [
      { model: "new", from: "m", info: { capabilities: "x" } },
      400,
      'info field "capabilities" must be an array of strings',
    ],
    [{ model: "new", files: { "x.gguf": "" } }, 400, "invalid digest format"],
    [{ model: "new", files: { "x.gguf": "sha256:../../x" } }, 400, "invalid digest format"],
    [{ model: "new", files: { "x.gguf": 7 } }, 400, "files: expected a digest for each file, got 7"],
    [{ model: "new", draft_quantize: "q8_0", from: "m" }, 400, "--draft-quantize requires a DRAFT model"],
    [
      { model: "new", from: "m", draft_files: { x: "y" }, remote_host: "h" },
      400,
      "DRAFT cannot be used with remote models",
    ],
    [{ model: "new", from: "m", adapters: { "x.gguf": "" } }, 400, "invalid digest format"],
    [{ model: "new", from: "m", adapters: { "../x.gguf": digestOfNothing } }, 400, "file path must be relative"],
    [{ model: "new", from: "m", adapters: { "x.gguf": 7 } }, 400, "adapters: expected a digest for each file, got 7"],
    [
      { model: "new", from: "m", adapters: { "x.gguf": digestOfNothing, "y.gguf": digestOfNothing } },
      400,
      "only one adapter is currently supported",
    ],
    [
      { model: "new", modelfile: "FROM m", adapters: { "x.gguf": digestOfNothing } },
      400,
      "'adapters' cannot be combined with 'modelfile'",
    ],
    [{ model: "new", from: "m", draft_files: { x: "y" } }, 400, "invalid digest format"],
    [
      { model: "new", from: "m", draft: "n", draft_files: { "x.gguf": digestOfNothing } },
      400,
      "only one draft model is currently supported",
    ],
    [
      { model: "new", from: "m", draft: "n", draft_quantize: "q9_9" },
      400,
      expect.stringContaining("unsupported quantization type"),
    ],
    [
      { model: "new", from: "m", remote_host: "h" },
      400,
      "'remote_host': models on other servers are not supported yet",
    ],
    [
      { model: "new", from: "m", files: { "x.safetensors": `sha256:${X}` } },
      400,
      "expected one GGUF model to build upon, got 'm:latest' and 'new'",
    ],
    [{ model: "new", modelfile: "FROM m", system: "x" }, 400, "'system' cannot be combined with 'modelfile'"],
    [{ model: "new", path: "/x/Modelfile", from: "m" }, 400, "'from' cannot be combined with 'path'"],
    [
      { model: "new", path: "/etc/passwd" },
      403,
      "path /etc/passwd: outside the folders that this server may read (setting 'importDirs')",
    ],
    [
      { model: "new", modelfile: "FROM /etc/passwd" },
      403,
      "FROM /etc/passwd: outside the folders that this server may read (setting 'importDirs')",
    ],
    [
      { model: "new", from: "m", messages: [{ role: "user", images: ["AAAA"] }] },
      400,
      "messages: images and tool calls of stored messages are not supported yet",
    ],
    [{ model: "new", stream: "no" }, 400, 'stream: expected true or false, got "no"'],
  ])("%j: %d %s", async (body, status, error) => {
    const response = await create(body);
    expect([response.status, await response.json()]).toEqual([status, { error }]);
    await expect(load()).rejects.toMatchObject({ code: "not_found" });
  });

  test.each([
    "/x.gguf",
    "../x.gguf",
    "a/../../x.gguf",
    "a//b.gguf",
    "./x.gguf",
    "",
    "..",
    "a\\..\\x.gguf",
    "C:\\x",
    "a/",
  ])("the path %p of a file is refused", async (path) => {
    const response = await create({ model: "new", files: { [path]: digest } });
    expect([response.status, await response.json()]).toEqual([400, { error: "file path must be relative" }]);
  });

  test("without streaming, each error has its own status", async () => {
    const missing = { model: "new", stream: false, files: { "x.gguf": `sha256:${X}` } };
    const response = await create(missing);
    expect([response.status, await response.json()]).toEqual([
      500,
      { error: `x.gguf: no such file: blob sha256:${X} was not uploaded` },
    ]);
    const { digest: text } = await writeBlob(harness.root, new TextEncoder().encode("no model"));
    expect((await create({ ...missing, files: { "x.gguf": text } })).status).toBe(400);
    const unknown = await create({ ...missing, files: { "x.bin": text } });
    expect([unknown.status, await unknown.json()]).toEqual([400, { error: "unknown type" }]);
  });
});

test("`path` reads a Modelfile only inside the configured folders", async () => {
  const dir = join(dirname(harness.root), "allowed");
  await harness.close();
  harness = await makeHarness({ importDirs: [dir] });
  await mkdir(dir, { recursive: true });
  await writeTinyGguf(join(dir, "tiny.gguf"));
  await writeFile(join(dir, "Modelfile"), "FROM ./tiny.gguf\nSYSTEM From a file.");
  const response = await create({ model: "new", path: join(dir, "Modelfile"), stream: false });
  expect(await response.json()).toEqual({ status: "success" });
  expect((await load()).system).toBe("From a file.");
  const missing = await create({ model: "new", path: join(dir, "none") });
  expect([missing.status, await missing.json()]).toEqual([
    400,
    { error: expect.stringContaining("path: cannot read") },
  ]);
  await rm(dir, { recursive: true });
});

test("a client that hangs up during a create leaves no model", async () => {
  const { url } = harness.listen();
  const gone = new AbortController();
  const body = JSON.stringify({ model: "new", files: Object.fromEntries([["x.gguf", digest]]) });
  const response = await fetch(`${url}/api/create`, { method: "POST", body, signal: gone.signal });
  gone.abort();
  await response.text().catch(() => {});
  await Bun.sleep(50);
  const names = (await (await openStore(harness.root)).list()).map((model) => model.displayName);
  expect(names).toContain("m:latest");
});
