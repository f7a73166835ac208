/** Rerankers in folders, beyond their scores: originals.test.ts has those. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { convertModel } from "../../../src/library/convert/convert.ts";
import { makeModel } from "../../engine/architectures/models.ts";
import { byteTokenizer, encodeSafetensors, writeFolder } from "./hugging-face.ts";
import { readOriginals, tensorsOf } from "./originals.ts";

const originals = await readOriginals();
const folder = mkdtempSync(join(tmpdir(), "hearth-rankers-"));
afterAll(() => rmSync(folder, { recursive: true }));

const { metadata } = makeModel("llama");
const pieces = metadata["tokenizer.ggml.tokens"] as string[];
const [YES, NO] = [7, 3];
const answering = pieces.map((piece, id) => (id === YES ? "yes" : id === NO ? "no" : piece));

interface Sources {
  readonly original: string;
  readonly name: string;
  readonly config?: object;
  readonly tokens?: readonly string[];
  readonly pair?: readonly object[];
}

async function convert({ original, name, config = {}, tokens = pieces, pair }: Sources) {
  const made = originals[original]!;
  const words = byteTokenizer({ ...metadata, "tokenizer.ggml.tokens": [...tokens] });
  const processor = pair && { type: "TemplateProcessing", single: [], pair };
  const source = await writeFolder(join(folder, name), {
    "config.json": { ...made.config, ...config },
    "tokenizer.json": { ...words, post_processor: processor ?? null },
    "model.safetensors": encodeSafetensors(tensorsOf(made)),
  });
  const to = join(folder, `${name}.gguf`);
  await convertModel({ folder: source, to });
  return openGguf(to);
}

test.each([
  ["its own output", false, "output.weight"],
  ["a tied output", true, "token_embd.weight"],
])("Qwen3-Reranker ranks by the output rows of yes and no: %s", async (_, tied, from) => {
  const config = { tie_word_embeddings: tied };
  const plain = await convert({ original: "Qwen3", name: `plain-${tied}`, config, tokens: answering });
  const ranks = await convert({ original: "Qwen3", name: `Qwen3-Reranker-${tied}`, config, tokens: answering });
  expect(ranks.metadata.get("qwen3.pooling_type")).toBe(4);
  expect(plain.metadata.has("qwen3.pooling_type")).toBe(false);
  expect(ranks.tensors.has("output.weight")).toBe(false);
  const { shape, quant } = ranks.tensors.get("cls.output.weight")!;
  const rowBytes = shape[0]! * quant.blockBytes;
  const row = (id: number) => [...plain.read(from).subarray(id * rowBytes, (id + 1) * rowBytes)];
  expect([...ranks.read("cls.output.weight")]).toEqual([...row(YES), ...row(NO)]);
  for (const gguf of [plain, ranks]) gguf.close();
});

test("a vocabulary without yes and no, and classifiers with several labels, are refused", async () => {
  const lacking = convert({ original: "Qwen3", name: "qwen3-reranker-x" });
  await expect(lacking).rejects.toThrow("tokenizer: expected the tokens yes, no");
  const labels = (id2label: object | null) =>
    convert({ original: "Bert-ranker", name: `labels-${id2label === null}`, config: { id2label } });
  await expect(labels({ 0: "a", 1: "b", 2: "c" })).rejects.toThrow(
    "'id2label': expected one label, as rerankers have, got 3",
  );
  await expect(labels(null)).rejects.toThrow("got 2");
});

test("one special token between query and document becomes a prompt, and two are the default", async () => {
  const mark = (id: string): object => ({ SpecialToken: { id, type_id: 0 } });
  const [a, b] = ["A", "B"].map((id) => ({ Sequence: { id, type_id: 0 } })) as [object, object];
  const name = "one-between";
  const one = await convert({
    original: "ModernBert-ranker",
    name,
    pair: [mark("[C]"), a, mark("[S]"), b, mark("[S]")],
  });
  expect(one.metadata.get("tokenizer.chat_template.rerank")).toBe("[C]{query}[S]{document}[S]");
  const two = await convert({ original: "ModernBert-ranker", name: "two", pair: [a, mark("</s>"), mark("</s>"), b] });
  expect(two.metadata.has("tokenizer.chat_template.rerank")).toBe(false);
  const embeds = await convert({ original: "ModernBert", name: "embeds", pair: [a, mark("[S]"), b] });
  expect(embeds.metadata.has("tokenizer.chat_template.rerank")).toBe(false);
  for (const gguf of [one, two, embeds]) gguf.close();
});
