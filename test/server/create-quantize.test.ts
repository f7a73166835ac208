/** `POST /api/create` with `quantize`, row by row of the API's description. */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { quants } from "../../src/engine/formats/quant/index.ts";
import { writeBlob } from "../../src/library/store/blobs.ts";
import { drawn } from "../seed.ts";
import { encodeGguf } from "../engine/formats/gguf/fixture.ts";
import { halves } from "../library/fixture.ts";
import { linesOf, makeHarness, type Harness } from "./harness.ts";

setDefaultTimeout(30_000);

/** Values that the API lists for the field `quantize`; a run draws some. */
const ALLOWED = "q2_K q3_K_L q3_K_M q3_K_S q4_0 q4_1 q4_K_M q4_K_S q5_0 q5_1 q5_K_M q5_K_S q6_K q8_0".split(" ");

let harness: Harness;
beforeEach(async () => void (harness = await makeHarness()));
afterEach(() => harness.close());

/** The digest of an uploaded model of half floats, of `rows` rows. */
async function upload(rows = 4): Promise<string> {
  const metadata = {
    "general.architecture": "llama",
    "general.file_type": { u32: 1 },
    "llama.block_count": { u32: 1 },
    "llama.attention.head_count": { u32: 4 },
  };
  const data = halves(256 * rows);
  const tensor = (name: string) => ({ name, shape: [256, rows], quant: quants.f16, data });
  const tensors = ["token_embd.weight", "output.weight", "blk.0.ffn_up.weight"].map(tensor);
  return (await writeBlob(harness.root, encodeGguf({ metadata, tensors }))).digest;
}

const create = (body: object) => harness.post("/api/create", { model: "new", ...body });
const json = async (path: string, body?: object) =>
  (await (await harness.call(body ? "POST" : "GET", path, body)).json()) as Record<string, any>;
const levelOf = async (model: string) => (await json("/api/show", { model })).details.quantization_level;
const steps = async (body: object): Promise<string[]> => {
  const seen = (await linesOf(await create(body))).map((step) => String(step["status"] ?? step["error"]));
  return seen.map((status) => status.replace(/sha256:[0-9a-f]{64}/, "<digest>"));
};
const once = (list: string[]) => list.filter((status, i) => status !== list[i - 1] || status.endsWith("<digest>"));

describe("statuses of create with quantize", () => {
  test("modelfile: quantizing, a line per layer, writing manifest, success", async () => {
    const modelfile = `FROM @${await upload()}\nSYSTEM Be brief.\nPARAMETER top_k 3`;
    expect(once(await steps({ modelfile, quantize: "q4_K_M" }))).toEqual([
      "quantizing F16 model to Q4_K_M",
      ...Array(3).fill("creating new layer <digest>"),
      "writing manifest",
      "success",
    ]);
    expect(once(await steps({ model: "again", modelfile, quantize: "q4_K_M" }))).toEqual([
      "quantizing F16 model to Q4_K_M",
      ...Array(3).fill("using existing layer <digest>"),
      "writing manifest",
      "success",
    ]);
  });

  test("files: also parsing and verifying, with `digest`, `total` and `completed` in progress objects", async () => {
    const lines = await linesOf(await create({ files: { "x.gguf": await upload() }, quantize: "q8_0" }));
    expect(once(lines.map(({ status }) => String(status).replace(/sha256:\w+/, "<digest>")))).toEqual([
      "parsing GGUF",
      "quantizing F16 model to Q8_0",
      "verifying conversion",
      "creating new layer <digest>",
      "writing manifest",
      "success",
    ]);
    const total = 2 * 256 * 4 * 3;
    const status = "quantizing F16 model to Q8_0";
    expect(lines[1]).toEqual({ status, digest: "0000000000000000000", total });
    expect(lines.filter((line) => "completed" in line).at(-1)).toEqual({
      status: "quantizing F16 model to Q8_0",
      digest: "0000000000000000000",
      total,
      completed: total,
    });
  });

  test("stream false: only success", async () => {
    const response = await create({ files: { "x.gguf": await upload() }, quantize: "q4_0", stream: false });
    expect([response.status, await response.json()]).toEqual([200, { status: "success" }]);
    expect(response.headers.get("content-type")).toBe("application/json");
  });
});

describe("allowed values of quantize", () => {
  test.each(drawn("levels of quantize", ALLOWED, 4))(
    "%s, in any case, is the level that show and tags report",
    async (value) => {
      const files = { "x.gguf": await upload() };
      for (const [model, quantize] of [
        ["as", value],
        ["upper", value.toUpperCase()],
      ] as const) {
        expect((await create({ model, files, quantize, stream: false })).status).toBe(200);
        expect(await levelOf(model)).toBe(value.toUpperCase());
      }
      const { models } = await json("/api/tags");
      const listed = models.find(({ name }: { name: string }) => name === "as:latest");
      expect(listed.details.quantization_level).toBe(value.toUpperCase());
    },
  );

  test("`quantization` is an older name of the field", async () => {
    await create({ files: { "x.gguf": await upload() }, quantization: "q4_0", stream: false });
    expect(await levelOf("new")).toBe("Q4_0");
  });

  test.each(["q9_9", "iq2_xxs", "constructor", "q4_0 "])("%p is refused with 400", async (quantize) => {
    const response = await create({ files: { "x.gguf": await upload() }, quantize });
    const error = expect.stringContaining(
      `unsupported quantization type ${quantize.toUpperCase()} - supported types are F32`,
    );
    expect([response.status, await response.json()]).toEqual([400, { error }]);
  });
});

test("a model that is quantized already is refused with 400, or in the last line of the stream", async () => {
  await create({ model: "small", files: { "x.gguf": await upload() }, quantize: "q8_0", stream: false });
  const error = "quantization is only supported for F16, BF16 and F32 models";
  const response = await create({ from: "small", quantize: "q4_0" });
  expect([response.status, await response.json()]).toEqual([400, { error }]);
  const files = { "x.gguf": (await json("/api/show", { model: "small" })).modelfile.match(/sha256-[0-9a-f]{64}/)[0] };
  expect(await steps({ files, quantize: "q4_0" })).toEqual(["parsing GGUF", error]);
  const { models } = await json("/api/tags");
  expect(models.map(({ name }: { name: string }) => name)).not.toContain("new:latest");
});

test.each([true, false])("a client that disconnects during quantization leaves nothing (stream %p)", async (stream) => {
  const digest = await upload(40_000);
  const before = await readdir(join(harness.root, "blobs"));
  const { url } = harness.listen();
  const gone = new AbortController();
  const body = JSON.stringify({ model: "new", files: { "x.gguf": digest }, quantize: "q2_K", stream });
  const request = fetch(`${url}/api/create`, { method: "POST", body, signal: gone.signal });
  request.catch(() => {});
  await until(async () => (await readdir(join(harness.root, "blobs"))).length > before.length); // it is being written
  gone.abort();
  await until(async () => (await readdir(join(harness.root, "blobs"))).length === before.length);
  await until(() => harness.logs.some(({ path, status }) => path === "/api/create" && status === 499));
  expect(harness.logs.filter(({ msg }) => msg === "bug")).toEqual([]);
  expect((await json("/api/tags")).models).toHaveLength(1);
});

async function until(check: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await check())) await Bun.sleep(5);
}
