/** A diffusion model over HTTP: its capability, its options, every dialect, and refused requests. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { digestOf } from "../../src/library/store/digest.ts";
import { encodeGguf, type MemoryModel } from "../engine/formats/gguf/fixture.ts";
import { makeDiffusionModel } from "../engine/architectures/diffusion-models.ts";
import { startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

type Json = Record<string, any>;

let hearth: Hearth;
beforeAll(async () => {
  hearth = await startHearth();
  for (const name of ["llada", "dream"]) {
    const bytes = new Uint8Array(encodeGguf(makeDiffusionModel(name) as MemoryModel));
    const digest = digestOf(bytes);
    await fetch(`${hearth.url}/api/blobs/${digest}`, { method: "POST", body: bytes });
    const parameters = { diffusion_steps: 8, diffusion_algorithm: "margin", num_predict: 24, temperature: 0 };
    await hearth.post("/api/create", { model: name, files: { "m.gguf": digest }, parameters, stream: false });
  }
});
afterAll(() => hearth.stop());

async function post(path: string, body: Json): Promise<Json> {
  return (await hearth.post(path, body)).json() as Promise<Json>;
}
const asked = { model: "dream", messages: [{ role: "user", content: "abc" }] };

test("a diffusion model can complete, and keeps the options of its creation", async () => {
  const { capabilities, parameters } = await post("/api/show", { model: "dream" });
  expect(capabilities).toEqual(["completion"]);
  expect(parameters).toMatch(/diffusion_algorithm +"margin"\ndiffusion_steps +8/);
});

test("every API gives the same answer, of num_predict tokens", async () => {
  const options = { ignore_eos: true };
  const { message, eval_count, done_reason } = await post("/api/chat", { ...asked, options, stream: false });
  expect([eval_count, done_reason]).toEqual([24, "length"]);
  expect(message.content).not.toBe("");
  const { choices, usage } = await post("/v1/chat/completions", { ...asked, options });
  expect(choices[0].message.content).toBe(message.content);
  expect(usage.completion_tokens).toBe(24);
  const { content } = await post("/v1/messages", { ...asked, options, max_tokens: 24 });
  expect(content[0].text).toBe(message.content);
  const other = await post("/api/chat", { ...asked, options: { ...options, diffusion_steps: 1 }, stream: false });
  expect(other["message"].content).not.toBe(message.content);
});

test("the parts of a stream join to the whole answer", async () => {
  const options = { ignore_eos: true, diffusion_block_length: 4 };
  const reply = await hearth.post("/api/generate", { model: "llada", prompt: "abc", options });
  const lines = (await reply.text()).trim().split("\n");
  const parts = lines.map((line) => JSON.parse(line) as Json);
  expect(parts.length).toBeGreaterThan(6);
  const { response } = await post("/api/generate", { model: "llada", prompt: "abc", options, stream: false });
  expect(parts.map((part) => part["response"]).join("")).toBe(response);
});

test.each([
  ["/api/chat", { format: "json" }, "does not support a format or JSON schema"],
  ["/v1/chat/completions", { logprobs: true }, "does not support logprobs"],
  ["/api/chat", { options: { diffusion_algorithm: "best" } }, 'option "diffusion_algorithm" must be one of'],
] as const)("%s with %j is refused", async (path, more, says) => {
  const reply = await hearth.post(path, { ...asked, ...more, stream: false });
  expect(reply.status).toBe(400);
  expect(await reply.text()).toContain(JSON.stringify(says).slice(1, -1));
});
