/** Draft models of new models: a layer of their own; refused if their vocabulary differs. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { readPart } from "../../../src/engine/formats/files/read-header.ts";
import { modelfileText } from "../../../src/server/ollama/model-text.ts";
import { requestOfModelfile } from "../../../src/library/create/modelfile-request.ts";
import { layersOf } from "../../../src/library/store/manifest.ts";
import { parseName } from "../../../src/library/store/name.ts";
import { fields, makeWorkplace, statusesOf, type Workplace } from "../creating.ts";
import { writeTinyGguf } from "../fixture.ts";

let place: Workplace;
const at = (name: string): string => join(place.allowed, name);

beforeAll(async () => {
  place = await makeWorkplace();
  await writeTinyGguf(at("large.gguf"), { "general.name": "large" });
  await writeTinyGguf(at("small.gguf"), { "general.name": "small" });
  await writeTinyGguf(at("smaller.gguf"), { "general.name": "smaller" });
  await create("FROM ./large.gguf", "large");
  await create("FROM ./small.gguf", "small");
});
afterAll(() => rm(place.folder, { recursive: true }));

async function create(text: string, name = "new"): Promise<string[]> {
  const { root, allowed, library } = place;
  const request = await requestOfModelfile(text, {
    root,
    importDirs: [allowed],
    folder: allowed,
    name: parseName(name),
  });
  return statusesOf(library.create(request));
}

const draftIn = async (name: string): Promise<string | undefined> =>
  (await place.store.load(name)).paths.drafts.map((path) => path)[0];

test("DRAFT with a file or a model becomes a draft layer, which show prints and a model built upon it keeps", async () => {
  await create("FROM large\nDRAFT ./small.gguf\nPARAMETER draft_num_predict 3");
  const entry = await place.store.load("new");
  expect(layersOf(entry.layers, "draft")).toMatchObject([{ mediaType: "application/vnd.ollama.image.draft" }]);
  expect(await readFile(entry.paths.drafts[0]!)).toEqual(await readFile(at("small.gguf")));
  expect(entry.parameters).toEqual({ draft_num_predict: 3 });
  expect(modelfileText(entry, undefined)).toContain(`FROM ${entry.paths.model}\nDRAFT ${entry.paths.drafts[0]}\n`);
  expect(entry.weightBytes).toBe(layersOf(entry.layers, "model")[0]!.size + layersOf(entry.layers, "draft")[0]!.size);
  await create("FROM new", "kept");
  expect(await draftIn("kept")).toBe(entry.paths.drafts[0]!);
  await create("FROM new\nDRAFT ./smaller.gguf", "replaced");
  expect(await readFile((await draftIn("replaced"))!)).toEqual(await readFile(at("smaller.gguf")));
  await create("FROM large\nDRAFT small", "named");
  expect(await draftIn("named")).toBe((await place.store.load("small")).paths.model);
});

test("a draft with other tokens is refused, while control tokens and padding may differ", async () => {
  await writeTinyGguf(at("words.gguf"), { "tokenizer.ggml.tokens": ["a", "c"] });
  await writeTinyGguf(at("family.gguf"), { "tokenizer.ggml.model": "llama" });
  await writeTinyGguf(at("long.gguf"), {
    "tokenizer.ggml.tokens": Array.from({ length: 2000 }, (_, i) => `${i}`),
    "tokenizer.ggml.token_type": new Int32Array(2000).fill(1),
  });
  await writeTinyGguf(at("padded.gguf"), {
    "tokenizer.ggml.tokens": ["a", "<x>", "pad"],
    "tokenizer.ggml.token_type": new Int32Array([1, 3, 5]),
  });
  const refused: [string, string][] = [
    ["words", 'expected token 1 to be "b" as in the model, got "c"'],
    ["family", "expected a tokenizer 'gpt2' as the model has, got 'llama'"],
    ["long", "expected a vocabulary of 2 tokens as the model has, got 2000"],
  ];
  for (const [name, message] of refused) {
    await expect(create(`FROM large\nDRAFT ./${name}.gguf`, "bad")).rejects.toMatchObject({
      code: "bad_request",
      message: `DRAFT ./${name}.gguf: ${message}`,
    });
  }
  await create("FROM large\nDRAFT ./padded.gguf", "padded");
  expect(await draftIn("padded")).toBeDefined();
});

test("an unfit draft is refused with the name from the request", async () => {
  await writeTinyGguf(at("vision.gguf"), { "general.type": "mmproj" });
  const refused: [string, string][] = [
    [
      "FROM large\nDRAFT ./vision.gguf",
      "DRAFT ./vision.gguf: expected a whole GGUF model, got a file of kind 'projector'",
    ],
    ["FROM large\nDRAFT ./small.gguf\nDRAFT ./smaller.gguf", "only one draft model is currently supported"],
    ["FROM ./large.gguf\nDRAFT ./large.gguf", "DRAFT ./large.gguf: expected another model than FROM names"],
    ["FROM large\nDRAFT nowhere", "model 'nowhere' not found"],
    ["FROM large\nDRAFT ./nowhere.gguf", "DRAFT ./nowhere.gguf: no such file"],
  ];
  for (const [text, message] of refused) await expect(create(text, "bad")).rejects.toThrow(message);
  expect(await place.store.find("bad")).toBeUndefined();
});

test("the draft field is an uploaded file or a model's name", async () => {
  const { library, store } = place;
  await statusesOf(library.create(fields({ base: "large", draft: "small" })));
  expect(await draftIn("new")).toBe((await store.load("small")).paths.model);
  const source = { label: "x.gguf", path: at("smaller.gguf") };
  await statusesOf(library.create(fields({ base: "large", draft: source })));
  expect(await readFile((await draftIn("new"))!)).toEqual(await readFile(at("smaller.gguf")));
});

test("a draft is quantized apart from the model, and not again if it is quantized", async () => {
  const { library, store } = place;
  const request = fields({ base: "large", draft: "small", draftQuantize: "Q8_0" });
  expect(await statusesOf(library.create(request))).toContain("quantizing F32 model to Q8_0");
  const draft = (await draftIn("new"))!;
  const { tensors } = (await readPart(draft, { shard: 0 })).header;
  expect(tensors.get("token_embd.weight")?.quant.name).toBe("q8_0");
  const model = await store.load("new");
  expect(model.paths.model).toBe((await store.load("large")).paths.model);
  await statusesOf(library.create(fields({ base: "large", draft: { label: "x", path: draft } })));
  const again = fields({ base: "large", draft: { label: "x", path: draft }, draftQuantize: "Q4_0" });
  await expect(statusesOf(library.create(again))).rejects.toThrow(
    "draft quantization requires an unquantized draft model, got Q8_0",
  );
});
