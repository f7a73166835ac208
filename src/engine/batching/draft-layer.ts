/**
 * Drafts with a layer of the model that was trained for it: it predicts a token from the final hidden state of a row
 * and the token chosen after that row. It sees only rows of the answer, whose states were kept, and continues from its
 * own states after its own drafts.
 */
import type { Rows, Session, StateRows } from "../program/backend.ts";
import type { EventLoop } from "./event-loop.ts";
import type { Ahead } from "../text/sampling/sampler.ts";
import { makeDecodeCosts } from "./decode-costs.ts";
import type { Drafter } from "./draft.ts";
import { logitsOf, type KeptStates } from "./kept-states.ts";
import type { Sequence } from "./sequence.ts";

/** Maximum drafted tokens: each is less likely to be accepted than the one before. */
const DRAFTED_MAX = 4;

/** Belongs to the engine, which closes its sessions. */
export interface DraftLayer {
  /** The layer's session. */
  readonly session: Session;
  /** Computes logits from its states; undefined: the session returns both. */
  readonly head: Session | undefined;
  /** Size of states. */
  readonly dim: number;
  readonly vocabSize: number;
  readonly ctxLen: number;
  readonly kept: KeptStates;
}

/** The layer's content of a slot: a row per position from `first` on, computed from the model's own states. */
interface Held {
  readonly sequence: Sequence;
  readonly first: number;
  readonly count: number;
}

interface Open {
  readonly sequence: Sequence;
  readonly count: number;
  readonly said: number[];
  /** The input of its next run. */
  rows: StateRows;
}

/** Rows of the positions whose states are known. */
interface Pending {
  readonly rows: StateRows;
  /** Position of the first row that the slot holds afterwards. */
  readonly first: number;
}

/** The rows of a sequence that the layer lacks; undefined if the states up to the last position are unknown. */
function pendingOf(
  sequence: Sequence,
  { kept, dim }: DraftLayer,
  held: ReadonlyMap<number, Held>,
): Pending | undefined {
  const { slot, tokens } = sequence;
  const known = slot && kept.of(slot.index);
  const last = tokens.length - 2; // the last one evaluated
  if (!slot || !known || last < known.start || known.tokens[last - known.start] !== tokens[last]) return undefined;
  const before = held.get(slot.index);
  const next = before?.sequence === sequence ? before.first + before.count : -1;
  const goesOn = before && next >= known.start && next <= last;
  const from = goesOn ? next : known.start;
  const first = goesOn ? before.first : from;
  const rows: StateRows = {
    slot: slot.index,
    start: from - first,
    tokens: Int32Array.from(tokens.slice(from + 1)),
    positions: Int32Array.from({ length: last - from + 1 }, (_, i) => from + i + 1),
    input: known.states.subarray((from - known.start) * dim, (last + 1 - known.start) * dim),
    states: "last",
    drafted: true,
  };
  return { rows, first };
}

/** The last state of each sequence, and its logits. */
async function outputsOf(
  { session, head, dim }: Pick<DraftLayer, "session" | "head" | "dim">,
  open: readonly Open[],
): Promise<{ states: Float32Array; logits: Float32Array }> {
  const rows = open.map((each) => each.rows);
  if (!head) return session.runWithStates!(rows.map((each): Rows => ({ ...each, logits: "last" }))); // see `head`
  const states = (await session.states(rows)).slice(); // the next run reuses the array
  return { states, logits: await logitsOf(head, states, dim) };
}

/** Drafts one more token for each sequence, in one run. */
async function goOn(
  open: readonly Open[],
  { session, head, dim, vocabSize }: DraftLayer,
  aheadOf: (sequence: Sequence) => Ahead,
): Promise<void> {
  const { states, logits } = await outputsOf({ session, head, dim }, open);
  for (const [i, each] of open.entries()) {
    const { slot, start, tokens, positions } = each.rows;
    const id = aheadOf(each.sequence).next(logits.subarray(i * vocabSize, (i + 1) * vocabSize));
    each.said.push(id);
    each.rows = {
      slot,
      start: start + tokens.length,
      tokens: Int32Array.of(id),
      positions: Int32Array.of(positions!.at(-1)! + 1), // `pendingOf` returned some
      input: states.subarray(i * dim, (i + 1) * dim),
      states: "last",
    };
  }
}

export function makeLayerDrafter(layer: DraftLayer, { loop }: { readonly loop: EventLoop }): Drafter {
  const held = new Map<number, Held>();
  const aheads = new WeakMap<Sequence, Ahead>();
  const costs = makeDecodeCosts();
  const aheadOf = (sequence: Sequence): Ahead => {
    const known = aheads.get(sequence) ?? sequence.sampler.ahead();
    aheads.set(sequence, known);
    return known;
  };
  const begin = ({ sequence, count }: { sequence: Sequence; count: number }): Open | undefined => {
    const pending = pendingOf(sequence, layer, held);
    if (!pending) return undefined;
    const { rows, first } = pending;
    held.set(rows.slot, { sequence, first, count: rows.start + rows.tokens.length });
    aheadOf(sequence).begin();
    return { sequence, count, said: [], rows };
  };
  return {
    room: (sequence) =>
      pendingOf(sequence, layer, held) ? Math.min(DRAFTED_MAX, layer.ctxLen - sequence.tokens.length) : 0,
    cost(sequences, tokens) {
      const ns = costs.of(sequences);
      return ns === undefined ? undefined : ns * tokens;
    },
    catchUp: async () => {},
    async draft(wanted) {
      const all = wanted.map(begin);
      try {
        for (;;) {
          const open = all.filter((each) => each !== undefined).filter(({ said, count }) => said.length < count);
          if (open.length === 0) return all.map((each) => Int32Array.from(each?.said ?? []));
          const startedNs = loop.nowNs();
          await goOn(open, layer, aheadOf);
          costs.note(open.length, loop.nowNs() - startedNs);
        }
      } catch {
        held.clear(); // the content of the layer's slots is unknown
        return wanted.map(() => new Int32Array());
      }
    },
    close() {
      layer.session.close();
      layer.head?.close();
    },
  };
}
