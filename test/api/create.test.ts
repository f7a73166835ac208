/** The API document's rows for blobs and create, one test each, on the real server. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { quants } from "../../src/engine/formats/quant/index.ts";
import { digestOf } from "../../src/library/store/digest.ts";
import { ndjson, startHearth, type Hearth } from "../e2e/hearth.ts";
import { variantBytes } from "../e2e/variants.ts";
import { encodeGguf } from "../engine/formats/gguf/fixture.ts";
import { halves } from "../library/fixture.ts";
import { clientOf } from "./client.ts";

setDefaultTimeout(120_000);

const ABSENT = `sha256:${"0".repeat(64)}`;
/** The document's values of `quantize`; the details show them in capitals. */
const LEVELS = "q2_K q3_K_L q3_K_M q3_K_S q4_0 q4_1 q4_K_M q4_K_S q5_0 q5_1 q5_K_M q5_K_S q6_K q8_0".split(" ");

let hearth: Hearth;
let folder = "";
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "hearth-create-"));
  hearth = await startHearth({ env: { HEARTH_IMPORT_DIRS: folder } });
});
afterAll(async () => {
  await hearth.stop();
  rmSync(folder, { recursive: true });
});
const { call, post, create, upload } = clientOf(() => hearth);

const show = async (body: object): Promise<any> => (await post("/api/show", body)).body;

/** Statuses of a streamed create, without digests; a repeated status counts once. */
async function statuses(body: object): Promise<string[]> {
  const response = await hearth.post("/api/create", body);
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/x-ndjson"]);
  const lines = await Array.fromAsync(ndjson(response));
  const texts = lines.map((line) => String(line["status"]).replace(/sha256:[0-9a-f]{64}$/, "<digest>"));
  return texts.filter((text, i) => text.endsWith("<digest>") || text !== texts[i - 1]);
}

describe("HEAD and POST /api/blobs/:digest", () => {
  const bytes = new TextEncoder().encode("the content of a file");
  const digest = digestOf(bytes);

  test("POST answers 201 with the file's path; HEAD answers 404 before the upload, and 200 without a body after it", async () => {
    expect(await call("HEAD", `/api/blobs/${digest}`)).toMatchObject({ status: 404, text: "" });
    const created = await call("POST", `/api/blobs/${digest}`, bytes);
    expect(created.status).toBe(201);
    expect(await Bun.file(created.text).bytes()).toEqual(bytes);
    expect(await call("HEAD", `/api/blobs/${digest}`)).toMatchObject({ status: 200, text: "" });
  });
  test("a blob whose digest differs from the address gets 400 and is not kept", async () => {
    const reply = await call("POST", `/api/blobs/${ABSENT}`, bytes);
    expect(reply.status).toBe(400);
    expect(reply.body.error).toContain(ABSENT);
    expect((await call("HEAD", `/api/blobs/${ABSENT}`)).status).toBe(404);
  });
  test("a digest must be sha256: and hexadecimal digits; anything else gets 400", async () => {
    for (const text of ["sha256:12", "md5:00", "x"]) {
      expect((await call("HEAD", `/api/blobs/${text}`)).status).toBe(400);
      expect((await call("POST", `/api/blobs/${text}`, bytes)).status).toBe(400);
    }
  });
});

describe("POST /api/create", () => {
  /** Half floats, which can be quantized; a different file for each number. */
  const half = (n: number): Uint8Array =>
    encodeGguf({
      metadata: {
        "general.architecture": "llama",
        "general.name": `half ${n}`,
        "general.file_type": { u32: 1 },
        "llama.block_count": { u32: 1 },
        "llama.attention.head_count": { u32: 4 },
      },
      tensors: ["token_embd.weight", "output.weight", "blk.0.ffn_up.weight"].map((name) => ({
        name,
        shape: [256, 4],
        quant: quants.f16,
        data: halves(256 * 4),
      })),
    });

  test("model: a request without it gets 400", async () => {
    const reply = await post("/api/create", { modelfile: "FROM hearth" });
    expect([reply.status, reply.body]).toEqual([400, { error: "invalid model name" }]);
  });
  test("modelfile: the statuses are metadata, system layer, one per layer, manifest, success", async () => {
    const modelfile = "FROM hearth\nSYSTEM You are a pirate.\nPARAMETER num_predict 4";
    const lines = await statuses({ model: "pirate", modelfile });
    const layers = lines.slice(2, -2);
    expect(lines.slice(0, 2)).toEqual(["reading model metadata", "creating system layer"]);
    expect(lines.slice(-2)).toEqual(["writing manifest", "success"]);
    expect(new Set(layers)).toEqual(new Set(["using already created layer <digest>", "writing layer <digest>"]));
    expect(new Set(await statuses({ model: "pirate2", modelfile }))).toEqual(
      new Set(["reading model metadata", "creating system layer", layers[0]!, "writing manifest", "success"]),
    );
    expect(await show({ model: "pirate" })).toMatchObject({ system: "You are a pirate." });
    expect((await post("/api/generate", { model: "pirate", prompt: "Hi", stream: false })).body.eval_count).toBe(4);
  });
  test("path: a Modelfile in an allowed folder of the server is read; another path gets 403", async () => {
    const path = join(folder, "Modelfile");
    writeFileSync(path, "FROM hearth\nSYSTEM From a file.");
    await create({ model: "filed", path });
    expect((await show({ model: "filed" })).system).toBe("From a file.");
    expect((await post("/api/create", { model: "spy", path: "/etc/passwd", stream: false })).status).toBe(403);
  });
  test("modelfile: FROM accepts the path that an upload was answered with", async () => {
    const bytes = variantBytes("r");
    const { text: path } = await call("POST", `/api/blobs/${digestOf(bytes)}`, bytes);
    await create({ model: "remote", modelfile: `FROM ${path}` });
    const greedy = { prompt: "Hello!", stream: false, options: { temperature: 0, num_predict: 8 } };
    const answers = await Promise.all(["remote", "hearth"].map((model) => post("/api/generate", { model, ...greedy })));
    expect(answers[0]!.body.response).toBe(answers[1]!.body.response);
  });
  test("quantize: the statuses are both quantizations, new or existing layers, manifest, success", async () => {
    const modelfile = `FROM @${await upload(half(2))}`;
    const quantizing = "quantizing F16 model to Q4_K_M";
    const end = ["writing manifest", "success"];
    const body = { modelfile, quantize: "q4_K_M" };
    expect(await statuses({ model: "small", ...body })).toEqual([quantizing, "creating new layer <digest>", ...end]);
    expect(await statuses({ model: "small2", ...body })).toEqual([quantizing, "using existing layer <digest>", ...end]);
  });
  test.each(LEVELS)("quantize: %s is allowed, and becomes the model's quantization_level", async (quantize) => {
    await create({ model: `q-${quantize}`, modelfile: `FROM @${await upload(half(1))}`, quantize });
    expect((await show({ model: `q-${quantize}` })).details.quantization_level).toBe(quantize.toUpperCase());
  });
  test("quantize: a quantized source and an unknown level get 400", async () => {
    const refused = await post("/api/create", {
      model: "x",
      modelfile: "FROM hearth",
      quantize: "q4_0",
      stream: false,
    });
    expect([refused.status, refused.body.error]).toEqual([400, expect.stringContaining("only supported for F16")]);
    const unknown = await post("/api/create", { model: "x", modelfile: "FROM hearth", quantize: "q9_9" });
    expect([unknown.status, unknown.body.error]).toEqual([
      400,
      expect.stringContaining("unsupported quantization type Q9_9"),
    ]);
  });
  test("every progress object has a status; digest, total and completed are present while bytes are processed", async () => {
    const body = { model: "told", modelfile: `FROM @${await upload(half(3))}`, quantize: "q8_0" };
    const lines = await Array.fromAsync(ndjson(await hearth.post("/api/create", body)));
    for (const { status } of lines) expect(status).toBeString();
    const progress = lines.filter((line) => "total" in line);
    expect(progress.length).toBeGreaterThan(0);
    for (const { digest, total, completed = 0 } of progress) {
      expect([typeof digest, Number.isSafeInteger(total), Number.isSafeInteger(completed)]).toEqual([
        "string",
        true,
        true,
      ]);
      expect(completed).toBeLessThanOrEqual(total);
    }
  });
});
