/**
 * What a run gives each of its sequences: the logits of its last row, or only the candidates among them where the
 * session can choose these and the sampler needs no more. Which of the two never changes the token.
 */
import type { OfferRows, Session } from "../backend/backend.ts";
import type { Offer, OfferWish } from "../sampling/offer.ts";
import type { Work } from "./scheduler.ts";
import type { Sequence } from "./sequence.ts";

/** Undefined where no row of a sequence was wanted. */
export type Outcome = Float32Array | Offer | undefined;

/** Runs the rows; an outcome for each sequence of the work, good until the next run. */
export async function runWork(
  { rows, sequences }: Work,
  { session, vocabSize }: { session: Session; vocabSize: number },
): Promise<Outcome[]> {
  const { offers: chooser } = session;
  const wishes = rows.map(({ logits }, i) => (logits === "last" ? wishOf(sequences[i]!, chooser) : undefined));
  const { logits, offers } =
    chooser && wishes.some(Boolean)
      ? await chooser.run(rows.map((each, i): OfferRows => ({ ...each, wish: wishes[i] })))
      : { logits: await session.run(rows), offers: [] };
  let [row, offer] = [0, 0];
  return rows.map((each, i) => {
    if (each.logits === "none") return undefined;
    if (wishes[i]) return offers[offer++];
    return logits.subarray(row * vocabSize, ++row * vocabSize);
  });
}

/** A grammar masks all logits, and log-probabilities are shares of all of them. */
function wishOf({ sampler, grammar, request }: Sequence, chooser: Session["offers"]): OfferWish | undefined {
  if (!chooser || grammar || request.logprobs !== undefined) return undefined;
  return sampler.wish(chooser.limits);
}

/** Chooses the next id. @param mask ids that may follow, see `Sampler` */
export function sampleFrom(
  outcome: Float32Array | Offer,
  { sampler }: Pick<Sequence, "sampler">,
  mask: Int32Array | undefined,
): number {
  return outcome instanceof Float32Array ? sampler.sample(outcome, mask) : sampler.choose(outcome);
}
