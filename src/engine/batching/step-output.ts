/**
 * The output of a step for each of its sequences: the logits of its wanted rows, or only the last row's candidates if
 * the session can select them and the sampler needs no more. The choice never changes the sampled token.
 */
import type { OfferRows, Session } from "../program/backend.ts";
import type { Offer, OfferWish } from "../text/sampling/offer.ts";
import type { Work } from "./scheduler.ts";
import type { Sequence } from "./sequence.ts";

/** For one wanted row. */
export type StepOutput = Float32Array | Offer;

/** Runs the rows; returns one output per wanted row for each sequence of the work, valid until the next run. */
export async function runWork(
  { rows, sequences }: Work,
  { session, vocabSize }: { session: Session; vocabSize: number },
): Promise<(readonly StepOutput[])[]> {
  const { offers: chooser } = session;
  const wishes = rows.map(({ logits }, i) => (logits === "last" ? wishOf(sequences[i]!, chooser) : undefined));
  const { logits, offers } =
    chooser && wishes.some(Boolean)
      ? await chooser.run(rows.map((each, i): OfferRows => ({ ...each, wish: wishes[i] })))
      : { logits: await session.run(rows), offers: [] };
  let [row, offer] = [0, 0];
  return rows.map(({ logits: wanted, tokens }, i) => {
    if (wanted === "none") return [];
    if (wishes[i]) return offers.slice(offer, ++offer);
    const count = wanted === "all" ? tokens.length : 1;
    return Array.from({ length: count }, () => logits.subarray(row * vocabSize, ++row * vocabSize));
  });
}

/** A grammar masks all logits, and log-probabilities are relative to all of them. */
function wishOf({ sampler, grammar, request }: Sequence, chooser: Session["offers"]): OfferWish | undefined {
  if (!chooser || (grammar && !grammar.isFree) || request.logprobs !== undefined) return undefined;
  return sampler.wish(chooser.limits);
}

/** Chooses the next id, as the grammar allows. */
export async function choose(output: StepOutput, { grammar, sampler }: Sequence): Promise<number> {
  const mask = await grammar?.mask();
  const id = output instanceof Float32Array ? sampler.sample(output, mask) : sampler.choose(output);
  return grammar?.settle ? grammar.settle(id) : id;
}
