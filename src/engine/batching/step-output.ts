/**
 * The output of a step for each of its sequences: the logits of its wanted rows, or only the last row's candidates if
 * the session can select these and they are enough for the sampler. The choice never changes the sampled token.
 */
import type { TopKRows, Session } from "../program/backend.ts";
import type { TopK, TopKRequest } from "../text/sampling/top-k.ts";
import type { Work } from "./scheduler.ts";
import type { Sequence } from "./sequence.ts";

/** For one wanted row. */
export type StepOutput = Float32Array | TopK;

/**
 * Runs the rows, and describes the tokens of prompts whose log-probabilities are wanted. Returns one output per wanted
 * row for each sequence of the work, valid until the next run.
 */
export async function runWork(
  { rows, sequences }: Work,
  { session, vocabSize }: { session: Session; vocabSize: number },
): Promise<(readonly StepOutput[])[]> {
  const { topK: chooser } = session;
  const requests = rows.map(({ logits }, i) => (logits === "last" ? requestOf(sequences[i]!, chooser) : undefined));
  const { logits, topK } =
    chooser && requests.some(Boolean)
      ? await chooser.run(rows.map((each, i): TopKRows => ({ ...each, request: requests[i] })))
      : { logits: await session.run(rows), topK: [] };
  let [row, answered] = [0, 0];
  return rows.map(({ logits: wanted, tokens }, i) => {
    if (wanted === "none") return [];
    if (requests[i]) return topK.slice(answered, ++answered);
    const count = wanted === "all" ? tokens.length : 1;
    const own = logits.subarray(row * vocabSize, (row += count) * vocabSize);
    return outputsOf(own, { start: rows[i]!.start, sequence: sequences[i]!, vocabSize });
  });
}

/** The logits of each wanted row of a sequence. @param start position of its first row */
export function outputsOf(
  logits: Float32Array,
  { start, sequence, vocabSize }: { start: number; sequence: Sequence; vocabSize: number },
): readonly Float32Array[] {
  const count = logits.length / vocabSize;
  const outputs = Array.from({ length: count }, (_, i) => logits.subarray(i * vocabSize, (i + 1) * vocabSize));
  sequence.scores?.take(start, outputs);
  return outputs;
}

/** A grammar masks all logits, and log-probabilities are relative to all of them. */
function requestOf({ sampler, grammar, request }: Sequence, chooser: Session["topK"]): TopKRequest | undefined {
  if (!chooser || (grammar && !grammar.isFree) || request.logprobs !== undefined) return undefined;
  return sampler.topKRequest(chooser.limits);
}

/** Chooses the next id, as the grammar allows. */
export async function choose(output: StepOutput, { grammar, sampler }: Sequence): Promise<number> {
  const mask = await grammar?.mask();
  const id = output instanceof Float32Array ? sampler.sample(output, mask) : sampler.choose(output);
  return grammar?.settle ? grammar.settle(id) : id;
}
