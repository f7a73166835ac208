/** Sessions that can choose candidates: which requests get candidates and which all logits, with equal answers. */
import { expect, test } from "bun:test";
import type { SequenceRequest } from "../../../src/engine/batching/sequence.ts";
import type { SamplingOptions } from "../../../src/engine/text/sampling/options.ts";
import { makeBench, type Answer, type Next } from "./fakes.ts";

type Wanted = { options: Partial<SamplingOptions>; more?: Partial<SequenceRequest> };
/** Rows that need one candidate, forty, all logits, all logits, and eight after penalties. */
const REQUESTS: readonly Wanted[] = [
  { options: { temperature: 0 } },
  { options: { temperature: 1.5, seed: 42, top_k: 40 } },
  { options: { temperature: 1.5, seed: 42, top_k: 0, top_p: 1 } },
  { options: { temperature: 0 }, more: { logprobs: 2 } },
  { options: { temperature: 1, seed: 3, top_k: 8, repeat_penalty: 1.5, frequency_penalty: 0.5 } },
];

/** Letters that recur, so that penalties have an effect. */
const cycleNext: Next = (tokens) => 97 + (tokens.length % 5);

async function answers(topK: boolean): Promise<{ answers: Answer[]; requested: number[][] }> {
  const { engine, session, ask } = makeBench({ slots: REQUESTS.length, topK, next: cycleNext });
  const asked = REQUESTS.map(({ options, more }, i) => ask(`prompt ${i}`, { num_predict: 20, ...options }, more));
  const said = await Promise.all(asked);
  await engine.close();
  return { answers: said, requested: session.requested };
}

const plain = ({ pieces, end }: Answer) => ({
  pieces: pieces.map(({ text, logprobs }) => ({ text, logprobs })),
  reason: end.kind === "done" && end.reason,
  tokens: end.kind === "done" && [...end.tokens],
});

test("answers are the same with candidates and with all logits, alone and in one batch", async () => {
  const [few, all] = [await answers(true), await answers(false)];
  expect(few.answers.map(plain)).toEqual(all.answers.map(plain));
  expect(all.requested).toEqual([]);
  expect(few.requested).toContainEqual([1, 40, 0, 0, 8]);
});

test("a prompt's last chunk gives candidates, and the chunks before it give no results", async () => {
  const { engine, session, ask } = makeBench({ topK: true });
  await ask("a prompt of more than one chunk of tokens", { num_predict: 2 });
  expect(session.requested).toEqual([[1], [1]]);
  expect(session.runs.map((run) => run[0]!.count)).toEqual([16, 16, 9, 1]);
  await engine.close();
});

test("a request for log-probabilities computes all logits", async () => {
  const { engine, session, ask } = makeBench({ topK: true });
  const { pieces } = await ask("hello", { num_predict: 2 }, { logprobs: 3 });
  expect(pieces[0]!.logprobs![0]!.top).toHaveLength(3);
  expect(session.requested).toEqual([]);
  await engine.close();
});
