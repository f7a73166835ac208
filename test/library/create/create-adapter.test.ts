/** Adapters of new models: as GGUF and as safetensors, in both shapes of a request, and mismatches. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import type { WriteModel } from "../../../src/engine/formats/files/write.ts";
import { f16 } from "../../../src/engine/formats/quant/f16.ts";
import { blobPath, findBlob, writeBlob } from "../../../src/library/store/blobs.ts";
import type { CreateRequest } from "../../../src/library/create/creation.ts";
import type { Digest } from "../../../src/library/store/digest.ts";
import type { Library } from "../../../src/library/create/library.ts";
import { readModelfileAt, requestOfModelfile } from "../../../src/library/create/modelfile-request.ts";
import { parseName } from "../../../src/library/store/name.ts";
import { blobSource, type Source } from "../../../src/library/create/sources.ts";
import type { ModelEntry, Store } from "../../../src/library/store/store.ts";
import { makeAdapter } from "../../engine/architectures/adapters.ts";
import { makeModel } from "../../engine/architectures/models.ts";
import { encodeSafetensors, pack, type PlainTensor } from "../convert/hugging-face.ts";
import { encodeGguf, type MemoryModel } from "../../engine/formats/gguf/fixture.ts";
import { blobsIn, fields, makeWorkplace, statusesOf } from "../creating.ts";

let folder: string;
let root: string;
let allowed: string;
let store: Store;
let library: Library;
/** Digest of the base's weights, and of an adapter for it. */
let weights: Digest;
let lora: Digest;
beforeEach(async () => {
  ({ folder, root, allowed, store, library } = await makeWorkplace());
  weights = await put(MODEL);
  lora = await put(ADAPTER);
  await create(fields({ name: parseName("base"), sources: [source(weights, "base.gguf")] }));
});
afterEach(() => rm(folder, { recursive: true }));

const MODEL = makeModel("llama");
const ADAPTER = makeAdapter(MODEL, { rank: 2, alpha: 4, seed: 1, targets: /attn_/ });
const bytesOf = (model: WriteModel): Uint8Array => encodeGguf(model as MemoryModel); // its tensors are in memory
const put = async (model: WriteModel): Promise<Digest> => (await writeBlob(root, bytesOf(model))).digest;
const source = (digest: Digest, label = "x.gguf"): Source => blobSource(root, { label, digest });

const create = (request: CreateRequest): Promise<string[]> => statusesOf(library.create(request));
const adaptersOf = ({ layers }: ModelEntry): string[] =>
  layers.filter(({ mediaType }) => mediaType.endsWith(".adapter")).map(({ digest }) => digest);

/** A LoRA of two matrices of the second layer, as PEFT saves it. */
function peft(rank = 2, name = "q_proj"): Record<string, string | Uint8Array> {
  const values = (count: number, seed: number) =>
    Float32Array.from({ length: count }, (_, i) => (((i + 1) * (seed + 3)) % 61) / 64);
  const plain = (shape: number[], seed: number): PlainTensor => {
    return { dtype: "F16", shape, data: pack(values(shape[0]! * shape[1]!, seed), f16) };
  };
  const prefix = "base_model.model.model.layers.1.self_attn";
  return {
    "adapter_config.json": JSON.stringify({ peft_type: "LORA", r: rank, lora_alpha: 4, bias: "none" }),
    "adapter_model.safetensors": encodeSafetensors({
      [`${prefix}.${name}.lora_A.weight`]: plain([rank, 64], 1),
      [`${prefix}.${name}.lora_B.weight`]: plain([64, rank], 2),
    }),
  };
}

/** Files as blobs, as uploaded by a client. */
async function uploaded(files: Record<string, string | Uint8Array>) {
  const paths = new Map<string, string>();
  for (const [name, content] of Object.entries(files)) {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    paths.set(name, blobPath(root, (await writeBlob(root, bytes)).digest));
  }
  return { label: "new", files: paths };
}

describe("an adapter layer", () => {
  test("is created from a GGUF beside a base", async () => {
    expect(await create(fields({ base: "base", adapter: source(lora) }))).toEqual([
      "parsing GGUF",
      "using existing layer D",
      "using existing layer D",
      "writing manifest",
      "success",
    ]);
    const entry = await store.load("new");
    expect(entry.layers.map(({ mediaType, digest }) => [mediaType, digest])).toEqual([
      ["application/vnd.ollama.image.model", weights],
      ["application/vnd.ollama.image.adapter", lora],
    ]);
    expect(entry.paths).toMatchObject({ model: blobPath(root, weights), adapters: [blobPath(root, lora)] });
    expect(entry.config).toMatchObject({ model_family: "llama", model_families: ["llama"] });
  });

  test("is created from a GGUF among the files, recognised by its metadata", async () => {
    await create(fields({ sources: [source(weights, "m"), source(lora, "a")] }));
    expect(adaptersOf(await store.load("new"))).toEqual([lora]);
  });

  test("is created from safetensors, converted for the base", async () => {
    expect(await create(fields({ base: "base", adapter: await uploaded(peft()) }))).toEqual([
      "converting adapter",
      "using existing layer D",
      "creating new layer D",
      "writing manifest",
      "success",
    ]);
    const [path] = (await store.load("new")).paths.adapters;
    const gguf = openGguf(path!);
    expect([...gguf.tensors.keys()]).toEqual(["blk.1.attn_q.weight.lora_a", "blk.1.attn_q.weight.lora_b"]);
    expect(gguf.metadata.get("adapter.lora.alpha")).toBe(4);
    gguf.close();
  });

  test("is created beside weights that are quantized in the same create", async () => {
    await create(fields({ base: "base", adapter: source(lora), quantize: "Q8_0" }));
    const entry = await store.load("new");
    expect(adaptersOf(entry)).toEqual([lora]);
    expect(entry.config.file_type).toBe("Q8_0");
  });

  test("stays in a model built upon it, where a second adapter comes after it", async () => {
    await create(fields({ name: parseName("one"), base: "base", adapter: source(lora) }));
    await create(fields({ name: parseName("kept"), base: "one", system: "You are brief." }));
    expect(adaptersOf(await store.load("kept"))).toEqual([lora]);
    const other = await put(makeAdapter(MODEL, { rank: 4, alpha: 4, seed: 2 }));
    await create(fields({ name: parseName("two"), base: "one", adapter: source(other) }));
    expect(adaptersOf(await store.load("two"))).toEqual([lora, other]);
  });

  test("is copied with its model, and deleted with the last model that has it", async () => {
    await create(fields({ base: "base", adapter: source(lora) }));
    await library.copy({ from: parseName("new"), to: parseName("copy") });
    await library.remove(parseName("new"));
    expect((await store.load("copy")).paths.adapters).toEqual([blobPath(root, lora)]);
    await library.remove(parseName("copy"));
    expect([await findBlob(root, lora), await findBlob(root, weights)]).toEqual([undefined, bytesOf(MODEL).length]);
  });
});

describe("ADAPTER of a Modelfile", () => {
  const createFrom = async (text: string, at?: string): Promise<string[]> => {
    const place = { root, importDirs: [allowed], name: parseName("new") };
    return create(await requestOfModelfile(text, { ...place, ...(at === undefined ? {} : { folder: at }) }));
  };

  test("is a blob, by its digest or by the path from its upload", async () => {
    for (const value of [lora, `@${lora}`, blobPath(root, lora)]) {
      const steps = await createFrom(`FROM base\nADAPTER ${value}`);
      expect(steps).toEqual([
        "reading model metadata",
        "creating adapter layer",
        "creating system layer",
        "using already created layer D",
        "using already created layer D",
        expect.stringMatching(/^(using already created|writing) layer D$/),
        "writing manifest",
        "success",
      ]);
      expect(adaptersOf(await store.load("new"))).toEqual([lora]);
      await library.remove(parseName("new"));
      await put(ADAPTER);
    }
  });

  test("is a GGUF or a folder of safetensors in an allowed folder", async () => {
    await writeFile(join(allowed, "lora.gguf"), bytesOf(ADAPTER));
    await createFrom(`FROM base\nADAPTER ${join(allowed, "lora.gguf")}`);
    expect(adaptersOf(await store.load("new"))).toEqual([lora]);
    await mkdir(join(allowed, "peft"));
    for (const [name, content] of Object.entries(peft())) await writeFile(join(allowed, "peft", name), content);
    await writeFile(join(allowed, "Modelfile"), "FROM base\nADAPTER peft\n");
    const { text, folder: at } = await readModelfileAt(join(allowed, "Modelfile"), { root, importDirs: [allowed] });
    expect(await createFrom(text, at)).toContain("converting adapter");
    expect(adaptersOf(await store.load("new"))).toHaveLength(1);
  });

  test("refuses any other value by name", async () => {
    await mkdir(join(allowed, "two"));
    for (const name of ["a.gguf", "b.gguf"]) await writeFile(join(allowed, "two", name), bytesOf(ADAPTER));
    for (const [value, code, message] of [
      ["some-model", "bad_request", "ADAPTER some-model: expected a path or a blob, got a model name"],
      ["./lora.gguf", "bad_request", "ADAPTER ./lora.gguf: expected an absolute path or a blob, got a relative path"],
      ["/etc/passwd", "forbidden", /^ADAPTER \/etc\/passwd: outside the folders/],
      ["ALLOWED/none.gguf", "bad_request", /^ADAPTER .*none\.gguf: no such file$/],
      ["ALLOWED/two", "bad_request", "only one adapter is currently supported"],
    ] as const) {
      const created = createFrom(`FROM base\nADAPTER ${value.replace("ALLOWED", allowed)}`);
      const wanted = typeof message === "string" ? message : expect.stringMatching(message);
      await expect(created).rejects.toMatchObject({ code, message: wanted });
    }
    expect(await store.find("new")).toBeUndefined();
  });
});

describe("an adapter that does not fit is refused and leaves no blob", () => {
  const other = makeModel("qwen2");
  const narrow = { ...ADAPTER, tensors: ADAPTER.tensors.slice(1) };
  const cases: Readonly<Record<string, readonly [WriteModel, string]>> = {
    "a model": [MODEL, "x.gguf: 'general.type': expected 'adapter', got 'model'"],
    "for another architecture": [
      makeAdapter(other, { rank: 2, alpha: 2, seed: 1 }),
      "x.gguf: 'general.architecture': expected 'llama', that of the model, got 'qwen2'",
    ],
    "with half a pair": [
      narrow,
      `x.gguf: adapter of '${ADAPTER.tensors[0]!.name.slice(0, -7)}': expected lora_a and lora_b, got only lora_b`,
    ],
    "for a larger model of the same architecture": [
      makeAdapter(
        {
          ...MODEL,
          tensors: [
            { name: "blk.2.attn_q.weight", shape: [64, 64] },
            { name: "token_embd.weight", shape: [64, 64] },
          ],
        },
        { rank: 2, alpha: 2, seed: 1, targets: /blk/ },
      ),
      "x.gguf: tensor 'blk.2.attn_q.weight.lora_a': expected one for a weight of the model, got one for 'blk.2.attn_q.weight'",
    ],
  };
  for (const [what, [adapter, message]] of Object.entries(cases)) {
    test(what, async () => {
      const created = create(fields({ base: "base", adapter: source(await put(adapter)) }));
      await expect(created).rejects.toMatchObject({ code: "bad_request", message });
      expect(await store.find("new")).toBeUndefined();
    });
  }

  test("two adapters among the files", async () => {
    const second = await put(makeAdapter(MODEL, { rank: 4, alpha: 4, seed: 2 }));
    const created = create(fields({ base: "base", sources: [source(lora, "a"), source(second, "b")] }));
    await expect(created).rejects.toThrow("only one adapter is currently supported");
  });

  test("an adapter without an upload", async () => {
    const missing = `sha256:${"a".repeat(64)}` as Digest;
    const created = create(fields({ base: "base", adapter: source(missing) }));
    await expect(created).rejects.toMatchObject({
      code: "bad_file",
      message: expect.stringMatching(/^x\.gguf: no such file/),
    });
  });

  test("safetensors for a weight of another size", async () => {
    const files = await uploaded(peft(2, "k_proj")); // its matrix has half the rows
    const before = await blobsIn(root);
    const created = create(fields({ base: "base", adapter: files }));
    const message = "new: tensor 'blk.1.attn_k.weight.lora_b': expected (2, 32), got (2, 64)";
    await expect(created).rejects.toMatchObject({ code: "bad_request", message });
    expect(await blobsIn(root)).toEqual(before);
  });
});
