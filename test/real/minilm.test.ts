/** all-MiniLM-L6-v2, converted from its authors' folder: vectors and their order equal sentence-transformers'. */
import { afterAll, beforeAll, expect } from "bun:test";
import { join } from "node:path";
import { EMBEDDED, SENTENCES } from "../../bench/real/texts.ts";
import { runHearth, startHearth, type Hearth } from "../e2e/hearth.ts";
import { realModel, recorded } from "./models.ts";

const DIM = 384;
/** Scores this close may change places: the weights are converted to half floats. */
const TIE = 1e-3;

const minilm = await realModel("minilm");
let hearth: Hearth | undefined;
let vectors: number[][] = [];
const expected = Array.from(new Float16Array(await recorded("minilm.f16").arrayBuffer()));
const expectedOf = (i: number): number[] => expected.slice(i * DIM, (i + 1) * DIM);

beforeAll(async () => {
  if (minilm.path === "") return;
  hearth = await startHearth();
  const modelfile = join(hearth.home, "Modelfile");
  await Bun.write(modelfile, `FROM ${minilm.path}\n`);
  const env = { HEARTH_HOST: hearth.url };
  const { code, stderr } = await runHearth(["create", "minilm", "-f", modelfile], { home: hearth.home, env });
  if (code !== 0) throw new Error(stderr);
  vectors = await embed(EMBEDDED);
}, 120_000);
afterAll(() => hearth?.stop());

async function embed(input: readonly string[]): Promise<number[][]> {
  const reply = await hearth!.post("/api/embed", { model: "minilm", input });
  return ((await reply.json()) as { embeddings: number[][] }).embeddings;
}

const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
const cosine = (a: readonly number[], b: readonly number[]): number => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));

minilm.test("vectors equal the authors', in every language and up to the context's end", () => {
  const different = EMBEDDED.filter((_, i) => !(cosine(vectors[i]!, expectedOf(i)) >= 0.9999));
  expect(different).toEqual([]);
  expect(vectors.length).toBe(EMBEDDED.length);
});

minilm.test("496 pairs of sentences have the authors' order of similarity", () => {
  const pairs = SENTENCES.flatMap((_, i) => SENTENCES.slice(0, i).map((_, j) => [i, j] as const));
  const scores = pairs.map(([i, j]) => ({
    ours: cosine(vectors[i]!, vectors[j]!),
    theirs: cosine(expectedOf(i), expectedOf(j)),
  }));
  const ranked = scores.toSorted((a, b) => b.theirs - a.theirs);
  const inverted = ranked.filter(({ ours, theirs }, i) =>
    ranked.slice(i + 1).some((below) => below.ours > ours && theirs - below.theirs > TIE),
  );
  expect(inverted).toEqual([]);
  expect(pairs.length).toBe(496);
});

minilm.test("the model has its authors' context length, and num_ctx overrides it", async () => {
  const show = (await (await hearth!.post("/api/show", { model: "minilm" })).json()) as Record<string, any>;
  expect(show["parameters"]).toMatch(/^num_ctx +256$/);
  expect(show["capabilities"]).toEqual(["embedding"]);
  const [long] = await embed(["the cat ".repeat(200)]);
  const reply = await hearth!.post("/api/embed", {
    model: "minilm",
    input: "the cat ".repeat(200),
    options: { num_ctx: 512 },
  });
  const longer = ((await reply.json()) as { embeddings: number[][] }).embeddings[0]!;
  expect(cosine(long!, longer)).toBeLessThan(0.999);
});
