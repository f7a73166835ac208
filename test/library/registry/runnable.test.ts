/** Models that cannot run here are refused before their weights are fetched. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { CONFIG_TYPE } from "../../../src/library/store/manifest.ts";
import { f32 } from "../../../src/engine/formats/quant/f32.ts";
import { encodeGguf } from "../../engine/formats/gguf/fixture.ts";
import { startFront, type Front } from "./front.ts";
import { KB, makePlace, noise, type Place } from "./place.ts";

let front: Front;
let place: Place;
beforeEach(async () => {
  front = startFront();
  place = await makePlace({}, true, { runs: (architecture) => ["llama", "qwen2vl"].includes(architecture) });
});
afterEach(async () => {
  await front.stop();
  await place.close();
});

const LAYER = "application/vnd.ollama.image.";

/** @param size bytes of the model's tensor; above 4 MiB its header is fetched first */
function publish(metadata: Record<string, string>, config: object, { size = 5000 * KB, kind = "model" } = {}): string {
  const weights = encodeGguf({
    metadata: { "general.name": "n".repeat(2000), ...metadata, "tokenizer.ggml.tokens": ["a", "b"] },
    tensors: [{ name: "t", shape: [size / 4], quant: f32, data: noise(size, 3) }],
  });
  const layers = [{ mediaType: LAYER + kind, ...front.put(new Uint8Array(weights)) }];
  const text = new TextEncoder().encode(JSON.stringify(config));
  const manifest = { schemaVersion: 2, config: { mediaType: CONFIG_TYPE, ...front.put(text) }, layers };
  front.manifests.set("library/m:4b-mlx", new TextEncoder().encode(JSON.stringify(manifest)));
  return `${front.host}/library/m:4b-mlx`;
}

const pull = (name: string) => Array.fromAsync(place.pull(name));
/** Bytes of blobs that were transferred, according to ranges. */
const fetched = (): number =>
  front.blobRequests().reduce((sum, range) => {
    const [, from = "0", to = "0"] = /(\d+)-(\d+)/.exec(range) ?? [];
    return sum + Number(to) - Number(from) + 1;
  }, 0);

test("a model of an unsupported architecture is refused by the header of its weights", async () => {
  const name = publish({ "general.architecture": "mamba9" }, { model_family: "other" });
  await expect(pull(name)).rejects.toMatchObject({
    code: "unsupported",
    message: `model '${name}': models of the architecture 'mamba9' cannot be run here yet`,
  });
  expect(fetched()).toBeLessThan(1100 * KB);
  expect(await Bun.file(join(place.root, "blobs")).exists()).toBe(false);
});

test("a supported family is pulled without reading the header, and another family if its header is supported", async () => {
  await pull(publish({ "general.architecture": "llama" }, { model_family: "llama" }));
  await rm(place.root, { recursive: true });
  const steps = await pull(publish({ "general.architecture": "llama" }, { model_family: "llama9" }));
  expect(steps.at(-1)).toEqual({ status: "success" });
});

test("without ranges, an unsupported architecture is found after the download", async () => {
  front.behaviour.ignoreRanges = true;
  expect((await pull(publish({ "general.architecture": "llama" }, {}))).at(-1)).toEqual({ status: "success" });
  await rm(place.root, { recursive: true });
  await expect(pull(publish({ "general.architecture": "mamba9" }, {}))).rejects.toMatchObject({ code: "unsupported" });
});

test("a small model is pulled without reading its header", async () => {
  const steps = await pull(publish({ "general.architecture": "mamba9" }, {}, { size: 4 * KB }));
  expect(steps.at(-1)).toEqual({ status: "success" });
});

test("a safetensors model is refused by its layer or configuration, with the tag to pull instead", async () => {
  const say = (name: string) =>
    `model '${name}' is made of safetensors for MLX, which cannot be run here: pull '${name.slice(0, -4)}' instead`;
  let name = publish({}, {}, { kind: "tensor" });
  await expect(pull(name)).rejects.toMatchObject({ code: "unsupported", message: say(name) });
  name = publish({}, { model_format: "safetensors" });
  await expect(pull(name)).rejects.toMatchObject({ code: "unsupported", message: say(name) });
  expect(fetched()).toBeLessThan(10 * KB);
});
