/** Log-probabilities of prompts on the real server, as lm-evaluation-harness asks for them. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { loadProgram } from "../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../src/engine/backends/cpu.ts";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { EMBEDDED } from "../engine/batching/embedded-engine.ts";
import { startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

let hearth: Hearth;
beforeAll(async () => void (hearth = await startHearth()));
afterAll(() => hearth.stop());

const model = "hearth";
const TEXT = "The rain falls on the small town. A fox, hungry and wet, looks for a dry place.";

async function ask(body: object, path = "/v1/completions"): Promise<any> {
  const response = await hearth.post(path, { model, temperature: 0, ...body });
  const reply = await response.json();
  expect([response.status, reply]).toEqual([200, reply]);
  return reply;
}

const idsOf = async (content: string): Promise<number[]> => (await ask({ content }, "/api/tokenize")).tokens;
const measured = { echo: true, logprobs: 1, max_tokens: 1 };

/** The log-probability of each id after the first, and the best one, from the reference backend. */
async function reference(ids: readonly number[]): Promise<{ own: number; best: number }[]> {
  const gguf = openGguf(EMBEDDED);
  const session = await cpuBackend.load(loadProgram(gguf), {
    ctxLen: ids.length,
    slots: 1,
    precise: true,
    threads: 1,
    cacheDir: undefined,
  });
  const logits = await session.run([{ slot: 0, start: 0, tokens: Int32Array.from(ids), logits: "all" }]);
  const vocabSize = logits.length / ids.length;
  const found = ids.slice(1).map((id, at) => {
    const row = [...logits.subarray(at * vocabSize, (at + 1) * vocabSize)];
    const sum = Math.log(row.reduce((all, each) => all + Math.exp(each), 0));
    return { own: row[id]! - sum, best: Math.max(...row) - sum };
  });
  session.close();
  gguf.close();
  return found;
}

test("they are those of the reference backend: fresh, after a cached prefix, and beside other answers", async () => {
  const ids = await idsOf(TEXT);
  const wanted = await reference(ids);
  const [first] = (await ask({ ...measured, prompt: ids })).choices;
  expect(first.text.startsWith(TEXT)).toBe(true);
  const { tokens, token_logprobs: own, top_logprobs: top, text_offset: offsets } = first.logprobs;
  expect(tokens).toHaveLength(ids.length + 1); // the one that ends the answer included
  expect(tokens.slice(0, -1).join("")).toBe(TEXT);
  const pieces = offsets.map((at: number, i: number) => first.text.slice(at, offsets[i + 1]));
  expect(pieces.slice(0, -1)).toEqual(tokens.slice(0, -1));
  expect([own[0], top[0]]).toEqual([null, null]);
  for (const [i, each] of wanted.entries()) {
    expect(own[i + 1]).toBeCloseTo(each.own, 3);
    expect(Math.max(...(Object.values(top[i + 1]) as number[]))).toBeCloseTo(each.best, 3);
  }
  const again = await ask({ ...measured, prompt: ids });
  expect([again.choices[0].logprobs, again.usage.prompt_tokens_details]).toEqual([
    first.logprobs,
    { cached_tokens: 0 },
  ]);
  const other = ask({ prompt: "Tell me a long story.", max_tokens: 60, ignore_eos: true });
  const beside = await ask({ ...measured, prompt: [ids, TEXT] });
  for (const { logprobs } of beside.choices) expect(logprobs).toEqual(first.logprobs);
  await other;
});

test("a generated text has the same ones when it is a prompt", async () => {
  const ids = await idsOf("The sun");
  const [said] = (await ask({ ...measured, max_tokens: 12, prompt: ids })).choices;
  const [read] = (await ask({ ...measured, max_tokens: 0, prompt: said.text })).choices;
  expect(read.logprobs.tokens).toEqual(said.logprobs.tokens.slice(0, read.logprobs.tokens.length));
  expect(read.logprobs.tokens.length).toBeGreaterThan(8);
  for (const [i, logprob] of read.logprobs.token_logprobs.entries())
    if (i > 0) expect(logprob).toBeCloseTo(said.logprobs.token_logprobs[i], 3);
});

test("a chat's prompt is described with its template, and a prompt beyond the context is refused", async () => {
  const messages = [{ role: "user", content: "Hello!" }];
  const { prompt_logprobs: found, usage } = await ask(
    { messages, prompt_logprobs: 0, max_tokens: 1 },
    "/v1/chat/completions",
  );
  expect(found).toHaveLength(usage.prompt_tokens);
  const texts = found.map((each: object | null) => (each ? Object.values(each)[0].decoded_token : ""));
  expect(texts.join("")).toContain("user\nHello!");
  const long = await hearth.post("/v1/completions", { model, ...measured, prompt: Array(40).fill(5), num_ctx: 32 });
  expect([long.status, (await long.json()) as any]).toMatchObject([
    400,
    { error: { message: expect.stringContaining("the prompt has 40 tokens") } },
  ]);
});
