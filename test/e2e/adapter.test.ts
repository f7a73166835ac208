/** Models with adapters, made in every possible way, compared with their base. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { makeRng } from "../../src/engine/text/rng.ts";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { f16 } from "../../src/engine/formats/quant/f16.ts";
import { digestOf } from "../../src/library/store/digest.ts";
import { makeAdapter, shapesOf, type Shapes } from "../engine/architectures/adapters.ts";
import { gaussian } from "../conformance/weights.ts";
import { encodeSafetensors, pack, type PlainTensor } from "../library/convert/hugging-face.ts";
import { encodeGguf, type MemoryModel } from "../engine/formats/gguf/fixture.ts";
import { startFront } from "../library/registry/front.ts";
import { eventually, ndjson, runHearth, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

const EMBEDDED = resolve(import.meta.dir, "../../models/hearth/hearth.gguf");
const home = mkdtempSync(join(tmpdir(), "hearth-lora-"));
let hearth: Hearth;
let shapes: Shapes;
/** An adapter that changes the model's output. */
let lora: Uint8Array<ArrayBuffer>;

const encoded = (options: { rank: number; alpha: number; seed: number }): Uint8Array<ArrayBuffer> =>
  new Uint8Array(encodeGguf(makeAdapter(shapes, { ...options, targets: /attn|ffn/ }) as MemoryModel)); // in memory

beforeAll(async () => {
  hearth = await startHearth({ env: { HEARTH_IMPORT_DIRS: home } });
  const gguf = openGguf(EMBEDDED);
  shapes = shapesOf(gguf);
  gguf.close();
  lora = encoded({ rank: 8, alpha: 8, seed: 1 });
  const { digest } = await upload(lora);
  await create({ model: "laid", from: "hearth", adapters: { "lora.gguf": digest } });
});
afterAll(async () => {
  await hearth.stop();
  rmSync(home, { recursive: true, force: true });
});

async function say(model: string, { post } = hearth): Promise<string> {
  const messages = [{ role: "user", content: "Tell me a story about a fox." }];
  const body = { model, messages, stream: false, options: { temperature: 0, num_predict: 24 } };
  const reply = (await (await post("/api/chat", body)).json()) as Record<string, any>;
  if (reply["error"]) throw new Error(reply["error"]);
  return reply["message"].content;
}

/** The path that the server answers with. */
async function upload(bytes: Uint8Array<ArrayBuffer>): Promise<{ digest: string; path: string }> {
  const digest = digestOf(bytes);
  const reply = await fetch(`${hearth.url}/api/blobs/${digest}`, { method: "POST", body: bytes });
  return { digest, path: await reply.text() };
}

const create = (body: Record<string, unknown>): Promise<string[]> => stepsOf("/api/create", body);

async function stepsOf(path: string, body: Record<string, unknown>, { post } = hearth): Promise<string[]> {
  const steps: string[] = [];
  for await (const step of ndjson(await post(path, body))) steps.push(step["status"] ?? step["error"]);
  return steps;
}

async function loaded(): Promise<Record<string, number>> {
  const { models } = (await (await fetch(`${hearth.url}/api/ps`)).json()) as { models: Record<string, any>[] };
  return Object.fromEntries(models.map(({ name, size }) => [name, size]));
}

/** A LoRA of one matrix, as PEFT saves it. */
function peft(): Record<string, Uint8Array<ArrayBuffer>> {
  const rng = makeRng(3);
  const plain = (shape: number[], size: number): PlainTensor => {
    const values = Float32Array.from({ length: shape[0]! * shape[1]! }, () => size * gaussian(rng));
    return { dtype: "F16", shape, data: pack(values, f16) };
  };
  const prefix = "base_model.model.model.layers.1.mlp.down_proj";
  return {
    "adapter_config.json": new TextEncoder().encode(JSON.stringify({ peft_type: "LORA", r: 4, lora_alpha: 16 })),
    "adapter_model.safetensors": encodeSafetensors({
      [`${prefix}.lora_A.weight`]: plain([4, 768], 0.1),
      [`${prefix}.lora_B.weight`]: plain([256, 4], 0.5),
    }) as Uint8Array<ArrayBuffer>,
  };
}

describe("POST /api/create with adapters", () => {
  test("a GGUF adapter changes the model's answer, the same way each time, and leaves the base model's answer", async () => {
    const base = await say("hearth");
    const { digest, path } = await upload(encoded({ rank: 8, alpha: 8, seed: 5 }));
    const steps = await create({ model: "mine", from: "hearth", adapters: { "lora.gguf": digest } });
    expect(steps).toContain(`using existing layer ${digest}`);
    expect(steps.at(-1)).toBe("success");
    const own = await say("mine");
    expect(own.length).toBeGreaterThan(10);
    expect(own).not.toBe(base);
    expect(await say("mine")).toBe(own);
    expect(await say("hearth")).toBe(base);
    const sizes = await loaded(); // one runner for both
    expect(sizes["mine:latest"]!).toBeGreaterThan(0);
    expect(sizes["hearth:latest"]!).toBe(0);
    await hearth.post("/api/chat", { model: "mine", messages: [], keep_alive: 0 });
    expect(await eventually(async () => !("mine:latest" in (await loaded())))).toBe(true);
    expect(await say("mine")).toBe(own);
    const shown = (await (await hearth.post("/api/show", { model: "mine" })).json()) as Record<string, any>;
    expect(shown["modelfile"]).toContain(`\nADAPTER ${path}\n`);
  });

  test("a Modelfile with the path of the adapter's blob, as show prints it, makes the same model", async () => {
    const { path } = await upload(lora);
    expect(await create({ model: "again", modelfile: `FROM hearth\nADAPTER ${path}` })).toContain(
      "creating adapter layer",
    );
    expect(await say("again")).toBe(await say("laid"));
    const shown = (await (await hearth.post("/api/show", { model: "again" })).json()) as Record<string, any>;
    await create({ model: "printed", modelfile: shown["modelfile"] });
    expect(await say("printed")).toBe(await say("laid"));
  });

  test("safetensors make the same model as uploaded files, as a readable folder, and from the command line", async () => {
    const digests: Record<string, string> = {};
    mkdirSync(join(home, "peft"));
    for (const [name, bytes] of Object.entries(peft())) {
      digests[name] = (await upload(bytes)).digest;
      writeFileSync(join(home, "peft", name), bytes);
    }
    expect(await create({ model: "sent", from: "hearth", adapters: digests })).toContain("converting adapter");
    const own = await say("sent");
    expect([await say("hearth"), await say("laid")]).not.toContain(own);
    await create({ model: "read", modelfile: `FROM hearth\nADAPTER ${join(home, "peft")}` });
    expect(await say("read")).toBe(own);
    for (const adapter of ["./peft", "./peft/adapter_model.safetensors"]) {
      writeFileSync(join(home, "Modelfile"), `FROM hearth\nADAPTER ${adapter}\n`);
      const args = ["create", "typed", "-f", join(home, "Modelfile")];
      const { code, stderr } = await runHearth(args, { home, env: { HEARTH_HOST: hearth.url } });
      expect([code, stderr.trimEnd().split("\n").at(-1)]).toEqual([0, "success"]);
      expect(await say("typed")).toBe(own);
      await runHearth(["rm", "typed"], { home, env: { HEARTH_HOST: hearth.url } });
    }
  });

  test("a second adapter is added to the first", async () => {
    const { digest } = await upload(encoded({ rank: 4, alpha: 8, seed: 2 }));
    await create({ model: "second", from: "hearth", adapters: { "b.gguf": digest } });
    await create({ model: "both", from: "laid", adapters: { "b.gguf": digest } });
    const answers = [await say("hearth"), await say("laid"), await say("second"), await say("both")];
    expect(new Set(answers).size).toBe(4);
  });

  test("a file that is not an adapter is an error on the stream, and no model is made", async () => {
    const model = new Uint8Array(await Bun.file(EMBEDDED).arrayBuffer());
    const { digest } = await upload(model);
    const message = "lora.gguf: 'general.type': expected 'adapter', got 'model'";
    const body = { model: "none", from: "hearth", adapters: { "lora.gguf": digest } };
    expect(await create(body)).toEqual(["parsing GGUF", message]);
    const whole = await hearth.post("/api/create", { ...body, stream: false });
    expect([whole.status, await whole.json()]).toEqual([400, { error: message }]);
    expect((await hearth.post("/api/show", { model: "none" })).status).toBe(404);
  });
});

test("push and pull carry the adapter: another server gives the same answer", async () => {
  const front = startFront();
  const other = await startHearth();
  try {
    const model = `${front.host}/library/laid`;
    await hearth.post("/api/copy", { source: "laid", destination: model });
    expect((await stepsOf("/api/push", { model, insecure: true })).at(-1)).toBe("success");
    expect((await stepsOf("/api/pull", { model, insecure: true }, other)).at(-1)).toBe("success");
    expect(await say(model, other)).toBe(await say("laid"));
  } finally {
    await other.stop();
    await front.stop();
  }
});
