/** Reranking by a cross-encoder made in code, on the real server, checked against its formula. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../src/engine/backends/cpu.ts";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel, type WriteTensor } from "../../src/engine/formats/files/write.ts";
import { quants } from "../../src/engine/formats/quant/index.ts";
import { loadTokenizer } from "../../src/engine/text/tokenizer/load.ts";
import { encoders, makeEncoder, wordOf } from "../engine/architectures/encoders.ts";
import { startHearth, type Hearth } from "../e2e/hearth.ts";

setDefaultTimeout(60_000);

const SPEC = encoders["bert-cls"];
const { dim } = SPEC;
const DENSE = Float32Array.from({ length: dim * dim }, (_, i) => Math.sin(i * 1.7) / 4);
const BIAS = Float32Array.from({ length: dim }, (_, i) => Math.cos(i) / 8);
const OUTPUT = Float32Array.from({ length: dim }, (_, i) => Math.sin(i * 0.9) / 2);
const QUERY = `${wordOf(3)} ${wordOf(5)}`;
const DOCUMENTS = [wordOf(1), `${wordOf(5)} ${wordOf(7)} ${wordOf(3)}`, "hello, world", wordOf(3)];

const floats = (name: string, values: Float32Array, shape: readonly number[]): WriteTensor => ({
  name,
  shape,
  quant: quants.f32,
  data: [new Uint8Array(values.buffer)],
});

function makeReranker(): WriteModel {
  const { metadata, tensors } = makeEncoder(SPEC);
  return {
    metadata: { ...metadata, "bert.pooling_type": { u32: 4 } },
    tensors: [
      ...tensors,
      floats("cls.weight", DENSE, [dim, dim]),
      floats("cls.bias", BIAS, [dim]),
      floats("cls.output.weight", OUTPUT, [dim, 1]),
      floats("cls.output.bias", Float32Array.of(0.25), [1]),
    ],
  };
}

let hearth: Hearth;
const folder = mkdtempSync(join(tmpdir(), "hearth-rerank-"));
const path = join(folder, "rerank.gguf");
beforeAll(async () => {
  await writeGguf(path, makeReranker());
  hearth = await startHearth({ env: { HEARTH_IMPORT_DIRS: folder } });
  const created = await hearth.post("/api/create", { model: "rerank", modelfile: `FROM ${path}`, stream: false });
  expect(await created.json()).toEqual({ status: "success" });
});
afterAll(async () => {
  await hearth.stop();
  rmSync(folder, { recursive: true });
});

/** The embeddings of tokens, with the second type in place of the first, which the program adds. */
function ofSecondType(gguf: ReturnType<typeof openGguf>, ids: Int32Array): Float32Array {
  const [table, types] = ["token_embd.weight", "token_types.weight"].map((name) => {
    const { quant, shape } = gguf.tensors.get(name)!;
    const values = new Float32Array(shape[0]! * shape[1]!);
    quant.dequantize(gguf.read(name), values);
    return values;
  }) as [Float32Array, Float32Array]; // one per name
  return Float32Array.from({ length: ids.length * dim }, (_, at) => {
    const i = at % dim;
    return table[ids[Math.floor(at / dim)]! * dim + i]! + types[dim + i]! - types[i]!;
  });
}

/** Expected scores from the reference backend and the formula: [CLS] query [SEP] document [SEP], tanh, one number. */
async function expectedScores(): Promise<number[]> {
  const gguf = openGguf(path);
  const tokenizer = loadTokenizer(gguf.metadata, path);
  const options = { ctxLen: SPEC.ctxLen, slots: 1, precise: true, threads: 1, cacheDir: undefined };
  const session = await cpuBackend.load(loadProgram(gguf), options);
  const ids = (text: string): number[] => [...tokenizer.encode(text, { addSpecial: false, parseSpecial: false })];
  const scores: number[] = [];
  for (const document of DOCUMENTS) {
    const first = [2, ...ids(QUERY), 3];
    const second = Int32Array.from([...ids(document), 3]);
    const tokens = Int32Array.from([...first, ...second.map(() => -1)]);
    const vectors = ofSecondType(gguf, second);
    const state = await session.states([{ slot: 0, start: 0, tokens, vectors, states: "first" }]);
    const hidden = Array.from({ length: dim }, (_, row) =>
      Math.tanh(BIAS[row]! + state.reduce((sum, x, i) => sum + x * DENSE[row * dim + i]!, 0)),
    );
    scores.push(0.25 + hidden.reduce((sum, x, i) => sum + x * OUTPUT[i]!, 0));
  }
  session.close();
  gguf.close();
  return scores;
}

interface Reply {
  readonly results: { readonly index: number; readonly relevance_score: number; readonly document?: object }[];
  readonly [field: string]: unknown;
}

async function rerank(body: object, at = "/api/rerank"): Promise<Reply> {
  const response = await hearth.post(at, { model: "rerank", query: QUERY, documents: DOCUMENTS, ...body });
  expect([response.status, response.statusText]).toEqual([200, "OK"]);
  return (await response.json()) as Reply;
}

test("raw scores equal the formula, with the best document first", async () => {
  const expected = await expectedScores();
  const { results } = await rerank({ raw_scores: true });
  expect(results.map(({ relevance_score: score }) => score)).toEqual(
    expected.toSorted((a, b) => b - a).map((score) => expect.closeTo(score, 3)),
  );
  for (const { index, relevance_score: score } of results) expect(score).toBeCloseTo(expected[index]!, 3);
  expect(Math.max(...expected) - Math.min(...expected)).toBeGreaterThan(0.01); // they differ
});

test("relevance is the sigmoid of the raw score; top_n limits the results, and return_documents adds the texts", async () => {
  const raw = await rerank({ raw_scores: true });
  const all = await rerank({});
  expect(all.results.map(({ index }) => index)).toEqual(raw.results.map(({ index }) => index));
  for (const [i, { relevance_score: score }] of all.results.entries()) {
    expect(score).toBeCloseTo(1 / (1 + Math.exp(-raw.results[i]!.relevance_score)), 6);
  }
  const [best] = all.results;
  const { results } = await rerank({
    top_n: 1,
    return_documents: true,
    documents: DOCUMENTS.map((text) => ({ text })),
  });
  expect(results).toEqual([{ ...best!, document: { text: DOCUMENTS[best!.index]! } }]);
});

test("/api/rerank reports Ollama's counts and durations, and /v1/rerank OpenAI's usage", async () => {
  const native = await rerank({});
  expect(Object.keys(native)).toEqual(["model", "total_duration", "load_duration", "prompt_eval_count", "results"]);
  const openai = await rerank({}, "/v1/rerank");
  const count = native["prompt_eval_count"];
  expect(openai).toMatchObject({
    object: "list",
    model: "rerank",
    usage: { prompt_tokens: count, total_tokens: count },
  });
});

test("a document that is too long is truncated, or refused with truncate false; the model also embeds", async () => {
  const long = Array.from({ length: 300 }, (_, i) => wordOf(i % 40)).join(" ");
  expect((await rerank({ documents: [long] })).results.length).toBe(1);
  const refused = await hearth.post("/v1/rerank", {
    model: "rerank",
    query: "a",
    documents: ["b", long],
    truncate: false,
  });
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { error: { message: "documents[1]: the input length exceeds the context length" } },
  ]);
  const shown = await (await hearth.post("/api/show", { model: "rerank" })).json();
  expect((shown as Record<string, unknown>)["capabilities"]).toEqual(["embedding", "rerank"]);
  const embedded = (await (await hearth.post("/api/embed", { model: "rerank", input: "a" })).json()) as Record<
    string,
    any
  >;
  expect(embedded["embeddings"][0].length).toBe(dim);
});

describe("refused:", () => {
  test.each([
    [{ query: " " }, "query: expected a text, got none"],
    [{ documents: [] }, "documents: expected an array of texts, got none"],
    [{ documents: [3] }, 'documents[0]: expected a text, or {"text": …}'],
    [{ top_n: 0 }, "top_n: expected 1 or more, got 0"],
    [{ model: "hearth" }, '"hearth" does not support rerank'],
    [{ query: Array.from({ length: 200 }, (_, i) => wordOf(i)).join(" ") }, "query: expected one that leaves room"],
  ])("%j", async (body, message) => {
    const response = await hearth.post("/api/rerank", { model: "rerank", query: "a", documents: ["b"], ...body });
    expect([response.status, await response.json()]).toEqual([400, { error: expect.stringContaining(message) }]);
  });
});
