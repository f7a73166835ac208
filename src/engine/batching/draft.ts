/**
 * A draft model: a smaller model with the same vocabulary, which drafts tokens for the model. It has its own KV cache,
 * with a slot for each of the model's. Its tokens are sampled as the model's sampler would, with the same upcoming
 * random numbers, so that drafts are accepted as often as the two models agree.
 */
import type { Rows, Session } from "../program/backend.ts";
import type { EventLoop } from "./event-loop.ts";
import { assert } from "../../base/index.ts";
import type { Ahead } from "../text/sampling/sampler.ts";
import { makeDecodeCosts } from "./decode-costs.ts";
import type { Sequence } from "./sequence.ts";

/** Maximum number of missing tokens that are evaluated together with a sequence's first draft. */
const LAG_MAX = 16;
/** A prefix is copied from another slot if it saves at least this many tokens. */
const COPY_MIN_TOKENS = 16;
/** Tokens of the first and the longest piece of missing text per run. */
const PIECE = { first: 32, most: 512 } as const;

/** Belongs to the engine, which closes the session. */
export interface DraftModel {
  readonly session: Session;
  /** Number of its logits; the model may have more or fewer. */
  readonly vocabSize: number;
  readonly ctxLen: number;
}

interface Wanted {
  readonly sequence: Sequence;
  readonly count: number;
}

export interface Drafter {
  /** Maximum tokens that it can draft for a sequence now; 0: it must catch up first, or cannot draft. */
  room(sequence: Sequence): number;
  /** Nanoseconds to draft `tokens` of each of `sequences` at once; undefined before the first measurement. */
  cost(sequences: number, tokens: number): number | undefined;
  /** Evaluates missing tokens of a sequence for about this many nanoseconds. */
  catchUp(sequence: Sequence, budgetNs: number): Promise<void>;
  /** Drafts for each sequence, of the wanted lengths or shorter; empty if the model fails. */
  draft(wanted: readonly Wanted[]): Promise<readonly Int32Array[]>;
  close(): void;
}

/** The content of a draft model's slots. */
interface Cache {
  /** Number of a sequence's tokens that are missing; Infinity if they cannot be added. */
  lag(sequence: Sequence): number;
  /** Leading tokens that are present. */
  shared(sequence: Sequence): number;
  /** Copies a longer prefix from another slot. */
  borrow(sequence: Sequence): Promise<void>;
  /** Like the session's `run`. After a failure all slots are empty. */
  run(rows: readonly Rows[]): Promise<Float32Array>;
}

function makeCache({ session, ctxLen }: DraftModel, slots: number): Cache {
  const held: number[][] = Array.from({ length: slots }, () => []); // ids in each slot
  let failed = false;
  const shared = ({ slot, tokens }: Sequence): number => sharedLength(held[indexOf(slot)]!, tokens);
  return {
    shared,
    lag(sequence) {
      const { tokens, slot, media } = sequence;
      if (failed || !slot || media.length > 0 || tokens.length >= ctxLen) return Infinity;
      return tokens.length - shared(sequence);
    },
    async borrow({ slot, tokens }) {
      const to = indexOf(slot);
      const lengths = held.map((ids) => sharedLength(ids, tokens));
      const length = Math.max(...lengths);
      const from = lengths.indexOf(length);
      if (length < lengths[to]! + COPY_MIN_TOKENS) return;
      try {
        await session.copy({ from, to, length });
        held[to] = held[from]!.slice(0, length);
      } catch {
        failed = true; // as in `catchUp`
      }
    },
    async run(rows) {
      for (const { slot, start, tokens } of rows) {
        held[slot]!.length = start;
        for (const id of tokens) held[slot]!.push(id);
      }
      try {
        return await session.run(rows);
      } catch (error) {
        failed = true; // the model continues without drafts
        throw error;
      }
    },
  };
}

export function makeDrafter(
  model: DraftModel,
  { slots, loop, vocabSize }: { slots: number; loop: EventLoop; vocabSize: number },
): Drafter {
  const cache = makeCache(model, slots);
  const ids = Math.min(vocabSize, model.vocabSize);
  const aheads = new WeakMap<Sequence, Ahead>();
  const costs = makeDecodeCosts();
  let piece: number = PIECE.first;

  const aheadOf = (sequence: Sequence): Ahead => {
    const known = aheads.get(sequence) ?? sequence.sampler.ahead();
    aheads.set(sequence, known);
    return known;
  };
  /** Drafts one more token for each sequence, in one run. */
  const round = async (open: readonly { sequence: Sequence; said: number[] }[]): Promise<void> => {
    const rows = open.map(({ sequence, said }): Rows => {
      const all = [...sequence.tokens, ...said];
      const start = said.length === 0 ? cache.shared(sequence) : all.length - 1;
      return { slot: indexOf(sequence.slot), start, tokens: Int32Array.from(all.slice(start)), logits: "last" };
    });
    const startedNs = loop.nowNs();
    const logits = await cache.run(rows);
    if (rows.every(({ tokens }) => tokens.length === 1)) costs.note(rows.length, loop.nowNs() - startedNs);
    for (const [i, { sequence, said }] of open.entries()) {
      const first = i * model.vocabSize;
      said.push(aheadOf(sequence).next(logits.subarray(first, first + ids)));
    }
  };

  return {
    room: (sequence) => (cache.lag(sequence) <= LAG_MAX ? model.ctxLen - sequence.tokens.length : 0),
    cost(sequences, tokens) {
      const ns = costs.of(sequences);
      return ns === undefined ? undefined : ns * tokens;
    },
    async catchUp(sequence, budgetNs) {
      const lag = cache.lag(sequence);
      if (lag <= LAG_MAX || lag === Infinity) return;
      await cache.borrow(sequence);
      const { tokens, slot } = sequence;
      const start = cache.shared(sequence);
      const own = Int32Array.from(tokens.slice(start, Math.min(start + piece, tokens.length - 1)));
      if (own.length === 0) return;
      const startedNs = loop.nowNs();
      await cache.run([{ slot: indexOf(slot), start, tokens: own, logits: "none" }]).catch(() => undefined);
      const share = budgetNs / Math.max(1, loop.nowNs() - startedNs);
      if (own.length < piece && share > 1) return; // the short end of a text is a poor measurement
      piece = Math.max(LAG_MAX, Math.min(PIECE.most, Math.floor(piece * Math.max(0.5, Math.min(2, share)))));
    },
    async draft(wanted) {
      const drafts = wanted.map(({ sequence, count }) => ({ sequence, count, said: [] as number[] }));
      for (const { sequence } of wanted) aheadOf(sequence).begin();
      try {
        for (;;) {
          const open = drafts.filter(({ said, count }) => said.length < count);
          if (open.length === 0) return drafts.map(({ said }) => Int32Array.from(said));
          await round(open);
        }
      } catch {
        return wanted.map(() => new Int32Array());
      }
    },
    close: () => model.session.close(),
  };
}

function indexOf(slot: Sequence["slot"]): number {
  assert(slot, "a draft for a sequence without a slot");
  return slot.index;
}

/** Number of common leading tokens, excluding the sequence's last token, whose logits are wanted. */
function sharedLength(held: readonly number[], tokens: readonly number[]): number {
  const limit = Math.min(held.length, tokens.length - 1);
  let n = 0;
  while (n < limit && held[n] === tokens[n]) n++;
  return n;
}
