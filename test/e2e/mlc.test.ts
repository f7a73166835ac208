/** MLC models: the server stores and lists them, and runs none. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { digestOf } from "../../src/library/store/digest.ts";
import { mlcFolder } from "../library/convert/mlc-folder.ts";
import { bytesOf } from "../library/convert/onnx-folder.ts";
import { ndjson, startHearth, type Hearth } from "./hearth.ts";
import { uploadedFiles } from "./upload.ts";

let hearth: Hearth;
beforeAll(async () => {
  hearth = await startHearth();
  const files = await uploadedFiles(hearth, mlcFolder());
  const steps = await Array.fromAsync(ndjson(await hearth.post("/api/create", { model: "compiled", files })));
  expect(steps.at(-1)).toEqual({ status: "success" });
}, 60_000);
afterAll(() => hearth.stop());

test("list and show name the format mlc and its quantization", async () => {
  const { models } = (await (await fetch(`${hearth.url}/api/tags`)).json()) as { models: any[] };
  const details = { format: "mlc", family: "llama", parameter_size: "192", quantization_level: "q4f32_1" };
  expect(models.find(({ name }) => name === "compiled:latest").details).toMatchObject(details);
  const shown = (await (await hearth.post("/api/show", { model: "compiled" })).json()) as any;
  expect(shown.details).toMatchObject(details);
  expect(shown.model_info).toMatchObject({ "mlc.context_length": 4096 });
});

test.each([
  ["/api/generate", { prompt: "x" }],
  ["/api/chat", { messages: [{ role: "user", content: "x" }] }],
  ["/api/embed", { input: "x" }],
  ["/v1/chat/completions", { messages: [{ role: "user", content: "x" }] }],
])("%s is refused, and says that the model runs in a browser", async (path, body) => {
  const response = await hearth.post(path, { model: "compiled", stream: false, ...body });
  expect(response.status).toBe(400);
  expect(await response.text()).toContain(
    "model 'compiled:latest' was compiled by MLC for pages and cannot run on the server: it runs in a browser with " +
      "WebGPU: open /ui on this server and choose 'In this page, with WebLLM'",
  );
});

test("/api/parts lists the digests of a model's files, and each blob's answer is immutable", async () => {
  const parts = (await (await hearth.post("/api/parts", { model: "compiled" })).json()) as any;
  const expected = Object.entries(mlcFolder()).map(([name, content]) => {
    const bytes = bytesOf(content);
    return { name, digest: digestOf(bytes), size: bytes.length };
  });
  const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);
  expect(parts.files.sort(byName)).toEqual(expected.sort(byName));
  const shard = expected.find(({ name }) => name === "params_shard_1.bin")!;
  const response = await fetch(`${hearth.url}/api/blobs/${shard.digest}`);
  expect(response.headers.get("cache-control")).toContain("immutable");
  expect(digestOf(await response.bytes())).toBe(shard.digest);
});

test("WebLLM's Worker is a script of this server, apart from the page", async () => {
  const page = await (await fetch(`${hearth.url}/ui`)).text();
  expect(page).toContain('<meta name="hearth-webllm" content="ui/webllm.js">');
  const script = await fetch(`${hearth.url}/ui/webllm.js`);
  expect(script.headers.get("content-type")).toStartWith("text/javascript");
  expect(script.headers.get("content-security-policy")).toContain("connect-src 'self'");
  expect((await script.text()).length).toBeGreaterThan(1_000_000);
});
