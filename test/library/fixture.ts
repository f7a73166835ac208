/** A shipped model of a few hundred bytes, and stores made from it. */
import { mkdir, mkdtemp, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { writeGguf, type WriteValue } from "../../src/engine/formats/files/write.ts";
import { f32 } from "../../src/engine/formats/quant/f32.ts";
import { writeBlob } from "../../src/library/store/blobs.ts";
import {
  CONFIG_TYPE,
  mediaType,
  readManifest,
  writeManifest,
  type Layer,
  type LayerKind,
} from "../../src/library/store/manifest.ts";
import { parseName } from "../../src/library/store/name.ts";
import { manifestPath } from "../../src/library/store/store.ts";

export const tempFolder = (): Promise<string> => mkdtemp(join(tmpdir(), "hearth-store-"));

export const CHAT_TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:";

/** Half floats between −1 and 1, in a file's format: always the same. */
export function halves(count: number): Uint8Array {
  let state = 20_261_121;
  const values = Float16Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 31 - 1;
  });
  return new Uint8Array(values.buffer);
}

/** A GGUF with a header and one tensor: enough for everything but running it. */
export async function writeTinyGguf(path: string, extra: Readonly<Record<string, WriteValue>> = {}): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeGguf(path, {
    metadata: {
      "general.architecture": "llama",
      "general.name": "tiny",
      "general.file_type": { u32: 0 },
      "llama.context_length": { u32: 512 },
      "llama.embedding_length": { u32: 64 },
      "llama.attention.layer_norm_rms_epsilon": { f32: 1e-5 },
      "llama.rope.dimension_sections": new Int32Array([1, 2, 3, 4, 5, 6]),
      "tokenizer.ggml.model": "gpt2",
      "tokenizer.ggml.tokens": ["a", "b"],
      "tokenizer.ggml.token_type": new Int32Array([1, 1]),
      "tokenizer.ggml.merges": ["a b"],
      "tokenizer.chat_template": CHAT_TEMPLATE,
      ...extra,
    },
    tensors: [{ name: "token_embd.weight", shape: [64, 2], quant: f32, data: new Uint8Array(64 * 2 * 4) }],
  });
}

/** Writes a folder like `models/hearth`. */
export async function writeShippedModel(dir: string, modelfile = "FROM ./tiny.gguf\n"): Promise<void> {
  await writeTinyGguf(join(dir, "tiny.gguf"));
  await writeFile(join(dir, "Modelfile"), modelfile);
}

export interface StoredFixture {
  readonly config?: object;
  readonly gguf?: Readonly<Record<string, WriteValue>>;
  readonly texts?: readonly (readonly [LayerKind, string])[];
  readonly modifiedAt?: Date;
}

/** Puts a model into a store, like another server would. */
export async function putModel(root: string, name: string, fixture: StoredFixture = {}): Promise<void> {
  const weights = join(root, "..", `${crypto.randomUUID()}.gguf`);
  await writeTinyGguf(weights, fixture.gguf);
  const layers: Layer[] = [
    { mediaType: mediaType("model"), ...(await writeBlob(root, await Bun.file(weights).bytes())) },
  ];
  await Bun.file(weights).delete();
  for (const [kind, text] of fixture.texts ?? []) {
    layers.push({ mediaType: mediaType(kind), ...(await writeBlob(root, new TextEncoder().encode(text))) });
  }
  const config = fixture.config ?? { model_format: "gguf", model_family: "llama", model_type: "128", file_type: "F32" };
  const path = manifestPath(root, parseName(name));
  await writeManifest(path, {
    config: { mediaType: CONFIG_TYPE, ...(await writeBlob(root, new TextEncoder().encode(JSON.stringify(config)))) },
    layers,
  });
  if (fixture.modifiedAt) await utimes(path, fixture.modifiedAt, fixture.modifiedAt);
}

/** Adds a layer to a model in a store. */
export async function addLayer(
  root: string,
  { name, kind, bytes }: { name: string; kind: LayerKind; bytes: Uint8Array },
): Promise<void> {
  const path = manifestPath(root, parseName(name));
  const { config, layers } = await readManifest(path);
  const layer = { mediaType: mediaType(kind), ...(await writeBlob(root, bytes)) };
  await writeManifest(path, { config, layers: [...layers, layer] });
}
