/**
 * Speculative decoding: a step verifies drafted tokens and continues after the accepted ones (arXiv:2211.17192). A
 * draft is accepted only if the same token was sampled from the model's own logits, by the same sampler in the same
 * order as without drafts, so answers are identical to the last token for any sampling options. Measured times and
 * acceptance rates decide how many drafts a step has, possibly zero. Drafts come from earlier text or, if that has a
 * better acceptance rate, from a draft model or the model's draft layer.
 */
import type { Session } from "../program/backend.ts";
import { makeDecodeCosts, type DecodeCosts } from "./decode-costs.ts";
import { makeLayerDrafter } from "./draft-layer.ts";
import { makeDrafter, type Drafter } from "./draft.ts";
import type { EngineParts } from "./engine-parts.ts";
import { DRAFTED, kindOf, makeAcceptanceRates } from "./acceptance.ts";
import type { Work } from "./scheduler.ts";
import { startOver, type Sequence } from "./sequence.ts";

/** Maximum drafted tokens of a sequence in one step. */
const DRAFTED_MAX = 15;
/** Numbers of rows to which drafts fill a step, because kernels compute products in groups of these sizes. */
const FILLED = [2, 4, 8, 12, 16, 24, 32];
/** Minimum predicted speed-up over a step without drafts. */
const WORTH = 1.05;
/** Assumed cost of a draft model's token before the first measurement, relative to a step of the model. */
const DRAFT_SHARE = 0.2;
export interface Speculation {
  /** Adds drafts to a step for some of its sequences. */
  extend(work: Work): Promise<Work>;
  /** Records the duration of a step, without sampling. */
  took(work: Work, ns: number): void;
  /** Records how many drafts of the last step were accepted. */
  recordAccepted(sequence: Sequence, accepted: number): void;
  close(): void;
}

interface Candidate {
  readonly sequence: Sequence;
  /** In the step. */
  readonly index: number;
  /** Undefined: a draft model must provide them. */
  readonly tokens: Int32Array | undefined;
  /** Their number, or its maximum. */
  readonly most: number;
  readonly kind: number;
  /** Probability that a token is accepted if the tokens before it are. */
  readonly chance: number;
}

type Parts = Pick<EngineParts, "ctxLen" | "slots" | "vocabSize" | "loop" | "draft" | "draftLayer">;

export function makeSpeculation(parts: Parts): Speculation {
  const costs = makeDecodeCosts();
  const { draft, draftLayer } = parts;
  const drafter = draft ? makeDrafter(draft, parts) : draftLayer && makeLayerDrafter(draftLayer, parts);
  const records = makeAcceptanceRates();
  const roomOf = ({ cached, predictMax, generated, media }: Sequence): number =>
    media.every((placed) => placed.media.memory)
      ? Math.min(DRAFTED_MAX, parts.ctxLen - cached - 1, predictMax - generated.length - 1)
      : 0;
  const draftRoomOf = (sequence: Sequence): number => {
    const { draft_num_predict: wanted } = sequence.request.options;
    return sequence.media.length > 0 ? 0 : Math.min(roomOf(sequence), wanted < 0 ? DRAFTED_MAX : wanted);
  };

  const candidateOf = (sequence: Sequence, index: number): Candidate | undefined => {
    const room = roomOf(sequence);
    if (room < 1) return undefined;
    const draft = records.lookupOf(sequence).draft(sequence.tokens, room);
    const kind = draft ? kindOf(draft.match) : DRAFTED;
    const chance = records.chance(sequence, kind);
    const most = Math.min(draftRoomOf(sequence), drafter?.room(sequence) ?? 0);
    const drafted = records.chance(sequence, DRAFTED);
    if (most > 0 && drafted >= chance)
      return { sequence, index, tokens: undefined, most, kind: DRAFTED, chance: drafted };
    return draft && { sequence, index, tokens: draft.tokens, most: draft.tokens.length, kind, chance };
  };

  /** Runs the draft model over missing tokens of one sequence, for the duration of one step, if that is promising. */
  const catchUp = async ({ sequences }: Work): Promise<void> => {
    const budgetNs = costs.of(sequences.length);
    if (!drafter || budgetNs === undefined) return;
    const late = sequences.find((sequence) => {
      const most = draftRoomOf(sequence);
      if (most < 1 || drafter.room(sequence) > 0) return false;
      const chance = records.chance(sequence, DRAFTED);
      const candidate = { sequence, index: 0, tokens: undefined, most, kind: DRAFTED, chance };
      return counts([candidate], { sequences: 1, costs, drafter }).size > 0;
    });
    if (late) await drafter.catchUp(late, budgetNs);
  };

  return {
    async extend(work) {
      if (work.kind !== "decode") return work;
      const candidates = work.sequences.flatMap((sequence, index) => candidateOf(sequence, index) ?? []);
      const chosen = counts(candidates, { sequences: work.sequences.length, costs, drafter });
      const drafts = await draftsOf(chosen, drafter);
      await catchUp(work);
      if (drafter) for (const sequence of work.sequences) if (!drafts.has(sequence)) records.fade(sequence);
      if (drafts.size === 0) return work;
      const rows = work.rows.map((row, index) => {
        const draft = drafts.get(work.sequences[index]!);
        if (!draft) return row;
        records.drafted(work.sequences[index]!, { kind: draft.kind, count: draft.tokens.length });
        const tokens = Int32Array.of(...row.tokens, ...draft.tokens);
        return { ...row, tokens, logits: "all", drafted: true } as const;
      });
      return { ...work, rows };
    },
    took({ kind, rows }, ns) {
      const count = rows.reduce((sum, { tokens }) => sum + tokens.length, 0);
      if (kind === "decode") costs.note(count, ns);
    },
    recordAccepted: records.recordAccepted,
    close: () => drafter?.close(),
  };
}

/** The drafted tokens of the chosen sequences. */
async function draftsOf(
  chosen: ReadonlyMap<Candidate, number>,
  drafter: Drafter | undefined,
): Promise<Map<Sequence, { readonly tokens: Int32Array; readonly kind: number }>> {
  const drafts = new Map<Sequence, { tokens: Int32Array; kind: number }>();
  const asked = [...chosen].filter(([{ tokens }]) => !tokens);
  const said =
    asked.length > 0 ? await drafter?.draft(asked.map(([{ sequence }, count]) => ({ sequence, count }))) : [];
  for (const [{ sequence, kind, tokens }, count] of chosen) {
    const own = tokens?.subarray(0, count) ?? said?.[asked.findIndex(([each]) => each.sequence === sequence)];
    if (own && own.length > 0) drafts.set(sequence, { tokens: own, kind });
  }
  return drafts;
}

/** The number of drafts per sequence with the highest expected tokens per time. */
function counts(
  candidates: readonly Candidate[],
  { sequences, costs, drafter }: { sequences: number; costs: DecodeCosts; drafter: Drafter | undefined },
): Map<Candidate, number> {
  const chosen = new Map<Candidate, number>();
  let [rows, tokens, drafts, rounds] = [sequences, sequences, 0, 0];
  const plainNs = costs.of(rows);
  if (plainNs === undefined) return chosen; // before the first measurement
  const one = costs.of(1) ?? plainNs;
  const draftNs = (count: number, steps: number): number =>
    count === 0 ? 0 : (drafter?.cost(count, steps) ?? DRAFT_SHARE * one * steps);
  let rate = tokens / plainNs;
  for (const each of candidates.toSorted((a, b) => b.chance - a.chance)) {
    const { chance, most, tokens: known } = each;
    const all = known
      ? [...FILLED.map((filled) => filled - rows), most]
      : Array.from({ length: most }, (_, i) => i + 1);
    const drafting = known ? drafts : drafts + 1;
    let best = { count: 0, rate: rate * WORTH, tokens };
    for (const count of new Set(all)) {
      if (count < 1 || count > most) continue;
      const more = tokens + (chance * (1 - chance ** count)) / (1 - chance);
      const draftedNs = draftNs(drafting, known ? rounds : Math.max(rounds, count));
      const ns = costs.of(rows + count)! + draftedNs; // fewer rows were measured
      if (more / ns > best.rate) best = { count, rate: more / ns, tokens: more };
    }
    if (best.count === 0) continue;
    chosen.set(each, best.count);
    ({ rate, tokens } = best);
    rows += best.count;
    if (!known) [drafts, rounds] = [drafting, Math.max(rounds, best.count)];
  }
  return chosen;
}

/**
 * Removes the drafts from a failed decode step. If slots continue only from checkpoints, sequences without drafts start
 * over: their slot may be a step ahead, and no checkpoint records its place.
 */
export function withoutDrafts({ rows, sequences, ...work }: Work, { checkpoints }: Session): Work {
  const isKept = (_: unknown, i: number): boolean => !checkpoints || rows[i]!.drafted === true;
  sequences.forEach((sequence, i) => isKept(sequence, i) || startOver(sequence));
  return {
    ...work,
    sequences: sequences.filter(isKept),
    rows: rows
      .filter(isKept)
      .map(({ drafted = false, ...each }) =>
        drafted ? { ...each, tokens: each.tokens.subarray(0, 1), logits: "last" } : each,
      ),
  };
}
