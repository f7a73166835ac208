/** The embedded model as a folder of safetensors, uploaded and created again: its answers are unchanged. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import type { WriteValue } from "../../src/engine/formats/files/write.ts";
import type { Quant } from "../../src/engine/formats/quant/quant.ts";
import { digestOf } from "../../src/library/store/digest.ts";
import {
  DTYPES,
  encodeSafetensors,
  pack,
  plainConfig,
  plainTensors,
  type Dtype,
} from "../library/convert/hugging-face.ts";
import { byteLevelJson, piecesOf } from "../library/convert/tokenizer-files.ts";
import { encodeGguf, type MemoryModel } from "../engine/formats/gguf/fixture.ts";
import { ndjson, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

const gguf = openGguf(join(import.meta.dir, "../../models/hearth/hearth.gguf"));

const written = (value: unknown): WriteValue =>
  typeof value === "number" ? (Number.isInteger(value) ? { u32: value } : { f32: value }) : (value as WriteValue);

/** The embedded model with its matrices as 16-bit floats. */
function embedded(matrices: Quant): MemoryModel {
  const metadata = [...gguf.metadata].map(([key, value]): [string, WriteValue] => [key, written(value)]);
  const tensors = [...gguf.tensors.values()].map(({ name, shape, quant }) => {
    const values = new Float32Array(shape.reduce((product, size) => product * size, 1));
    quant.dequantize(gguf.read(name), values);
    const to = shape.length > 1 ? matrices : DTYPES.F32;
    return { name, shape, quant: to, data: pack(values, to) };
  });
  return { metadata: Object.fromEntries(metadata), tensors };
}

/** The files of a folder. */
function files(model: MemoryModel, dtype: Dtype): Record<string, Uint8Array> {
  const json = (value: object): Uint8Array => new TextEncoder().encode(JSON.stringify(value));
  const pieces = piecesOf(gguf.metadata);
  const at = (key: string): string => pieces[Number(gguf.metadata.get(`tokenizer.ggml.${key}_token_id`))]!;
  return {
    "config.json": json({ ...plainConfig(model), bos_token_id: null, eos_token_id: null }),
    "tokenizer.json": json(byteLevelJson(gguf.metadata, { pairs: true })),
    "tokenizer_config.json": json({ bos_token: at("bos"), eos_token: at("eos"), add_bos_token: false }),
    "chat_template.jinja": new TextEncoder().encode(String(gguf.metadata.get("tokenizer.chat_template"))),
    "model.safetensors": encodeSafetensors(plainTensors(model, dtype)),
  };
}

describe("a folder of safetensors", () => {
  let hearth: Hearth;
  beforeAll(async () => void (hearth = await startHearth()));
  afterAll(async () => {
    await hearth.stop();
    gguf.close();
  });

  async function upload(bytes: Uint8Array): Promise<string> {
    const digest = digestOf(bytes);
    await fetch(`${hearth.url}/api/blobs/${digest}`, { method: "POST", body: bytes as Uint8Array<ArrayBuffer> });
    return digest;
  }

  async function make(model: string, contents: Record<string, Uint8Array>, more: object = {}): Promise<string[]> {
    const digests: Record<string, string> = {};
    for (const [name, bytes] of Object.entries(contents)) digests[name] = await upload(bytes);
    const steps = await Array.fromAsync(ndjson(await hearth.post("/api/create", { model, files: digests, ...more })));
    return steps.map((step) => String(step["error"] ?? step["status"]));
  }

  async function answer(model: string): Promise<string> {
    const messages = [{ role: "user", content: "Hello! Who are you?" }];
    const body = { model, messages, stream: false, options: { temperature: 0, num_predict: 40 } };
    const { message } = (await (await hearth.post("/api/chat", body)).json()) as { message: { content: string } };
    return message.content;
  }

  test.each(["F16", "BF16"] as const)("in %s answers like the GGUF of the same weights", async (dtype) => {
    const model = embedded(DTYPES[dtype]);
    expect((await make(`gguf-${dtype}`, { "a.gguf": encodeGguf(model) })).at(-1)).toBe("success");
    const steps = await make(`folder-${dtype}`, files(model, dtype));
    expect([steps[0], steps.at(-1)]).toEqual(["converting model", "success"]);
    const wanted = await answer(`gguf-${dtype}`);
    expect(wanted.length).toBeGreaterThan(20);
    expect(await answer(`folder-${dtype}`)).toBe(wanted);
  });

  test("is quantized if the request asks for it", async () => {
    const steps = await make("small", files(embedded(DTYPES.F16), "F16"), { quantize: "q8_0" });
    expect(steps).toContain("quantizing F16 model to Q8_0");
    expect(await answer("small")).toContain("Hearth");
  });

  test("is an error of the stream if a file is missing", async () => {
    const { "config.json": _, ...rest } = files(embedded(DTYPES.F16), "F16");
    expect((await make("broken", rest)).at(-1)).toBe("broken: expected a file 'config.json', got none");
  });
});
