/**
 * Small stand-ins for the engine's tests: a tokenizer of bytes, and a session whose next token is a function of the
 * whole sequence before it. A mistake about cached tokens changes the answer.
 */
import type { TopKRows, TopKRuns, Rows, Session, SlicedRuns } from "../../../src/engine/program/backend.ts";
import type { Checkpoint, Growth, KvBlocks, PackedCheckpoints } from "../../../src/engine/program/kept-slots.ts";
import { systemLoop, type EventLoop } from "../../../src/engine/batching/event-loop.ts";
import { AppError, assert } from "../../../src/base/errors.ts";
import type { SnapshotStore } from "../../../src/engine/formats/snapshots.ts";
import { Embedder, type EmbedEvent } from "../../../src/engine/batching/embedder.ts";
import { Engine } from "../../../src/engine/batching/engine.ts";
import type { PromptLogprob } from "../../../src/engine/batching/prompt-logprobs.ts";
import type { SequenceEvent, SequenceRequest } from "../../../src/engine/batching/sequence.ts";
import type { GrammarCompiler } from "../../../src/engine/text/sampling/grammar.ts";
import { SAMPLING_DEFAULTS, type SamplingOptions } from "../../../src/engine/text/sampling/options.ts";
import type { Tokenizer } from "../../../src/engine/text/tokenizer/tokenizer.ts";
import { topKOf } from "../text/sampling/top-k.ts";

export const END = 256;
export const VOCAB = 257;
/** A token that makes every run with it fail. */
export const BROKEN = 7;

/** Ids 0…255 are bytes, 256 ends an answer. */
export const byteTokenizer: Tokenizer = {
  family: "bpe",
  vocabSize: VOCAB,
  bos: undefined,
  eos: END,
  newlineId: 10,
  before: undefined,
  after: undefined,
  endOfGeneration: new Set([END]),
  suppressed: new Int32Array(0),
  encode: (text) => {
    const whole = typeof text === "string" ? text : text.map((segment) => segment.text).join("");
    return Int32Array.from(new TextEncoder().encode(whole));
  },
  findControl: () => [],
  bytesOf: (id) => (id < END ? Uint8Array.of(id) : new Uint8Array()),
  detokenize: (ids) => new TextDecoder().decode(Uint8Array.from([...ids].filter((id) => id < END))),
};

export interface FakeSession extends Session {
  /** Every run, in order. */
  readonly runs: { slot: number; start: number; count: number }[][];
  /** The same, as given. */
  readonly inputs: Rows[];
  readonly copies: number[];
  /** Slots that released their memory. */
  readonly released: number[];
  /** For every run with candidates: their number per row, 0 if all its logits were wanted. */
  readonly requested: number[][];
  closed: boolean;
}

/** The letter after a sequence; `END` if `next` says so. */
export type Next = (tokens: readonly number[]) => number;

/** A letter that depends on every token before it. */
export const hashNext: Next = (tokens) => {
  let hash = 7;
  for (const token of tokens) hash = (hash * 31 + token + 1) % 99991;
  return 97 + (hash % 26);
};

interface FakeOptions {
  readonly slots: number;
  readonly ctxLen: number;
  readonly next: Next;
  readonly delayMs?: number;
  /** True if the session chooses candidates when rows want no more. */
  readonly topK?: boolean;
  /** True if the next token depends on a state that continues only from its position, or from a checkpoint. */
  readonly recurrent?: boolean;
  /** True if rows may be drafted. */
  readonly verifies?: boolean;
  /** True if the content of slots can be saved. */
  readonly blocks?: boolean;
  /** Number of a run's parts that fit into a budget; absent: runs are not divided. A run has one part per row. */
  readonly partsOf?: (budgetNs: number) => number;
  /** True if a slot's memory can be released; a token takes a byte. */
  readonly growth?: boolean;
  /** Called at each run with the number of its rows. */
  readonly onRun?: (rows: number) => void;
  /** The logits after a sequence, (VOCAB); default: 10 for the next token, 0 for all others. */
  readonly logits?: (tokens: readonly number[]) => ArrayLike<number>;
}

interface FakeCheckpoint extends Checkpoint {
  readonly state: readonly number[];
}

/** The record of rows: ids, or for vectors, which have one value each, that value; other ones with a memory. */
function valuesOf({ slot, tokens, vectors = new Float32Array(), memory }: Rows): number[] {
  let at = 0;
  const more = memory ? remembered(memory.rows) : 0;
  const values = Array.from(tokens, (token) => (token < 0 ? vectors[at++]! : token) + more);
  assert(at === vectors.length, `slot ${slot}: ${vectors.length} vectors for ${at} rows without an id`);
  return values;
}

/** A memory's share in the record of each row. */
export const remembered = ([first]: Float32Array): number => 1000 * first!;

/** The end of the sequence before each wanted row's result. */
function wantedEnds({ start, tokens: { length }, logits }: Rows): number[] {
  if (logits === "none") return [];
  return logits === "last" ? [start + length] : Array.from({ length }, (_, i) => start + i + 1);
}

/** Chooses candidates for rows with a request. */
async function runTopK(batch: readonly TopKRows[], session: FakeSession): ReturnType<TopKRuns["run"]> {
  const logits = await session.run(batch);
  session.requested.push(batch.map(({ request }) => request?.k ?? 0));
  const wanted = batch.filter((rows) => rows.logits === "last");
  const parts = wanted.map(({ request }, i) => ({ request, logits: logits.slice(i * VOCAB, (i + 1) * VOCAB) }));
  return {
    logits: Float32Array.from(parts.flatMap((part) => (part.request ? [] : [...part.logits]))),
    topK: parts.flatMap((part) => (part.request ? [topKOf(part.logits, part.request)] : [])),
  };
}

const BLOCK = 8;

/** Answers later, like a device, from the state at the call. */
const later = <T>(value: T): Promise<T> => Bun.sleep(0).then(() => value);

/** Blocks of the content of slots: four bytes for each position. */
function makeFakeBlocks(held: number[][], recurrent: boolean): KvBlocks {
  const bytesOf = (numbers: readonly number[]): Uint8Array => new Uint8Array(Int32Array.from(numbers).buffer);
  const packed: PackedCheckpoints = {
    // `save` made it
    pack: (checkpoint) => later(new Uint8Array(Float64Array.from((checkpoint as FakeCheckpoint).state).buffer)),
    unpack: (length, bytes): FakeCheckpoint => ({
      length,
      bytes: 8 * length,
      state: [...new Float64Array(bytes.slice().buffer)],
    }),
  };
  return {
    length: BLOCK,
    layout: "fake",
    checkpoints: recurrent ? packed : undefined,
    bytesOf: (count) => 4 * count,
    read(slot, first, count) {
      assert(first + count <= held[slot]!.length, `slot ${slot}: ${first} + ${count} of ${held[slot]!.length}`);
      const bytes = bytesOf(held[slot]!.slice(first, first + count));
      return recurrent ? later(bytes) : bytes;
    },
    write(slot, { first, count, bytes }) {
      assert(first <= held[slot]!.length && bytes.length === 4 * count, `slot ${slot}: a block after a gap`);
      held[slot]!.splice(first, count, ...new Int32Array(bytes.slice().buffer));
    },
  };
}

function makeFakeGrowth(held: number[][], of: { states: number[][]; session: () => FakeSession }): Growth {
  return {
    tokenBytes: 1,
    release(slot) {
      of.session().released.push(slot);
      held[slot] = [];
      of.states[slot] = [];
    },
  };
}

function makeFakeSlices(
  partsOf: (budgetNs: number) => number,
  of: { runNow: (batch: readonly Rows[]) => Float32Array; states: number[][]; session: () => FakeSession },
): SlicedRuns {
  return {
    rowsMax: 32,
    start(rows) {
      let left = rows.tokens.length;
      return {
        longestNs: 1e6,
        next(budgetNs) {
          left -= Math.max(1, partsOf(budgetNs));
          of.states[rows.slot]?.push(END); // its states are being copied
          if (left > 0) return undefined;
          of.states[rows.slot]?.splice(rows.start);
          of.session().runs.push([{ slot: rows.slot, start: rows.start, count: rows.tokens.length }]);
          return of.runNow([rows]);
        },
      };
    },
  };
}

function logitsOf(
  batch: readonly Rows[],
  held: readonly number[][],
  { next, verifies = false, logits: spread }: FakeOptions,
): Float32Array {
  const ends: (readonly number[])[] = [];
  for (const rows of batch) {
    assert(!rows.drafted || (rows.logits === "all" && verifies), `slot ${rows.slot}: rows were guessed`);
    for (const end of wantedEnds(rows)) ends.push(held[rows.slot]!.slice(0, end));
  }
  const logits = new Float32Array(ends.length * VOCAB);
  for (const [i, tokens] of ends.entries()) {
    if (spread) logits.set(spread(tokens), i * VOCAB);
    else logits[i * VOCAB + next(tokens)] = 10;
  }
  return logits;
}

/** A session that remembers tokens instead of keys and values. */
export function makeFakeSession(options: FakeOptions): FakeSession {
  const held: number[][] = Array.from({ length: options.slots }, () => []);
  /** The tokens that a recurrence has seen, independent of its KV cells. */
  const states: number[][] = Array.from({ length: options.slots }, () => []);
  const run = async (batch: readonly Rows[]): Promise<Float32Array> => {
    session.runs.push(batch.map(({ slot, start, tokens }) => ({ slot, start, count: tokens.length })));
    if (options.delayMs) await Bun.sleep(options.delayMs);
    return runNow(batch);
  };
  const runNow = (batch: readonly Rows[]): Float32Array => {
    options.onRun?.(batch.reduce((sum, { tokens }) => sum + tokens.length, 0));
    session.inputs.push(...batch);
    for (const [i, { slot, start, tokens }] of batch.entries()) {
      const row = held[slot]!;
      assert(start <= row.length, `slot ${slot}: rows start at ${start}, but only ${row.length} tokens are cached`);
      row.length = start;
      row.push(...valuesOf(batch[i]!));
      if (start === 0) states[slot] = [];
      assert(!options.recurrent || start === states[slot]!.length, `slot ${slot}: no states at ${start}`);
      states[slot]!.push(...tokens);
      if (tokens.some((token) => token === BROKEN)) throw new AppError("runner", "a logit is NaN");
      if (options.recurrent) assert(states[slot]!.join() === row.join(), `slot ${slot}: keys of another sequence`);
      assert(row.length <= options.ctxLen, `slot ${slot}: ${row.length} tokens in a context of ${options.ctxLen}`);
    }
    return logitsOf(batch, held, options);
  };
  const save = (slot: number, length: number): Promise<FakeCheckpoint> => {
    assert(states[slot]!.length === length, `slot ${slot} stands at ${states[slot]!.length}, not ${length}`);
    return later({ length, bytes: 8 * length, state: [...states[slot]!] });
  };
  const restore = (slot: number, checkpoint: Checkpoint): void => {
    states[slot] = [...(checkpoint as FakeCheckpoint).state]; // `save` made it
  };
  const session: FakeSession = {
    backend: "fake",
    device: "none",
    bytes: { weights: 0, kv: 0, scratch: 0 },
    runs: [],
    copies: [],
    released: [],
    inputs: [],
    requested: [],
    closed: false,
    run,
    ...(options.topK ? { topK: { limits: { k: 128, masked: 256 }, run: (batch) => runTopK(batch, session) } } : {}),
    states: async (batch) => {
      await run(batch.map(({ slot, start, tokens }) => ({ slot, start, tokens, logits: "none" })));
      const wanted = batch.filter((rows) => rows.states !== "none");
      return Float32Array.from(wanted.flatMap(({ slot }) => stateOf(held[slot]!)));
    },
    ...(options.recurrent && { checkpoints: { save, restore } }),
    ...(options.verifies && { verifies: true }),
    ...(options.partsOf && { slices: makeFakeSlices(options.partsOf, { runNow, states, session: () => session }) }),
    ...(options.growth && { growth: makeFakeGrowth(held, { states, session: () => session }) }),
    ...(options.blocks && { blocks: makeFakeBlocks(held, options.recurrent ?? false) }),
    shift: (slot, { keep, discard }) => {
      held[slot]!.splice(keep, discard);
      states[slot]!.splice(keep, discard);
    },
    copy: ({ from, to, length }) => {
      session.copies.push(length);
      held[to] = held[from]!.slice(0, length);
    },
    close: () => void (session.closed = true),
  };
  return session;
}

/** The state after a sequence: two values that depend on every token. */
export const stateOf = (tokens: readonly number[]): number[] => {
  const angle = hashNext(tokens) + tokens.length;
  return [Math.cos(angle), Math.sin(angle)];
};

export interface Bench {
  readonly engine: Engine;
  readonly session: FakeSession;
  /** The draft model's session. */
  readonly draft: FakeSession | undefined;
  /** Events of embedding requests. */
  readonly embedded: readonly EmbedEvent[];
  /** Submits and resolves with all events. */
  ask(prompt: string, options?: Partial<SamplingOptions>, more?: Partial<SequenceRequest>): Promise<Answer>;
}

type Progress = Extract<SequenceEvent, { kind: "progress" }>;

export interface Answer {
  readonly text: string;
  /** Every text event, in order. */
  readonly pieces: readonly Extract<SequenceEvent, { kind: "text" }>[];
  /** Undefined if it failed before its prompt was read. */
  readonly prompt: Extract<SequenceEvent, { kind: "prompt" }> | undefined;
  /** Reports on the prompt, in order. */
  readonly progress: readonly Progress[];
  /** The tokens of the prompt with their log-probabilities, in order. */
  readonly described: readonly PromptLogprob[];
  readonly end: Exclude<SequenceEvent, { kind: "text" | "prompt" | "progress" | "promptLogprobs" }>;
}

/** Collects the events of a request until its end. */
function collector(resolve: (answer: Answer) => void): (event: SequenceEvent) => void {
  const pieces: Extract<SequenceEvent, { kind: "text" }>[] = [];
  const progress: Progress[] = [];
  const described: PromptLogprob[] = [];
  let read: Answer["prompt"];
  return (event) => {
    if (event.kind === "text") pieces.push(event);
    else if (event.kind === "progress") progress.push(event);
    else if (event.kind === "promptLogprobs") described.push(...event.tokens);
    else if (event.kind === "prompt") {
      assert(!read && pieces.length === 0, "the prompt is told of once, before the text");
      read = event;
    } else {
      const text = pieces.map((piece) => piece.text).join("");
      resolve({ text, pieces, prompt: read, progress, described, end: event });
    }
  };
}

/** An engine on a fake session. */
export function makeBench(
  options: Partial<FakeOptions> & {
    chunk?: number;
    chunkShared?: number;
    loop?: EventLoop;
    prefixBytes?: number;
    kvBytes?: number;
    freeBytes?: () => number;
    snapshots?: SnapshotStore;
    fixedContext?: boolean;
    grammars?: () => Promise<GrammarCompiler>;
    /** Settings that differ for the draft model. */
    draft?: Partial<FakeOptions>;
  } = {},
): Bench {
  const {
    slots = 2,
    ctxLen = 64,
    next = hashNext,
    delayMs = 0,
    topK = false,
    chunk = 16,
    recurrent = false,
    verifies = false,
    blocks = false,
    growth = false,
    onRun = () => {},
    logits,
  } = options;
  const { loop = systemLoop(), prefixBytes = 1e6, partsOf, kvBytes, fixedContext, freeBytes } = options;
  const limits = { kvBytes, fixedContext, freeBytes };
  const rest = {
    topK,
    recurrent,
    verifies,
    blocks,
    growth,
    onRun,
    ...(partsOf && { partsOf }),
    ...(logits && { logits }),
  };
  const session = makeFakeSession({ slots, ctxLen, next, delayMs, ...rest });
  const draft = options.draft && makeFakeSession({ slots, ctxLen, next, ...(logits && { logits }), ...options.draft });
  const listeners = new Map<number, (event: SequenceEvent) => void>();
  let lastId = 0;
  const embedded: EmbedEvent[] = [];
  const emit = (event: EmbedEvent): void => void embedded.push(event);
  const engine = new Engine({
    session,
    loop,
    embedder: new Embedder({ session, pooling: "last", dim: 2, encoder: false, emit }),
    tokenizer: byteTokenizer,
    grammars: options.grammars ?? (() => Promise.reject(new Error("no grammar in these tests"))),
    vocabSize: VOCAB,
    ctxLen,
    slots,
    draft: draft && { session: draft, vocabSize: VOCAB, ctxLen: options.draft?.ctxLen ?? ctxLen },
    prefixBytes,
    ...limits,
    snapshots: options.snapshots && (() => options.snapshots!),
    limits: { chunkAlone: chunk, chunkShared: options.chunkShared ?? 4 },
    emit: (events) => events.forEach((event) => listeners.get(event.id)?.(event)),
  });
  const ask: Bench["ask"] = (prompt, sampling = {}, more = {}) => {
    const id = more.id ?? ++lastId;
    const { promise, resolve } = Promise.withResolvers<Answer>();
    listeners.set(id, collector(resolve));
    const wanted = { ...SAMPLING_DEFAULTS, temperature: 0, num_predict: 8, ...sampling };
    const ids = byteTokenizer.encode(prompt, { addSpecial: false, parseSpecial: false });
    void engine.submit({ id, prompt: [{ kind: "ids", ids }], options: wanted, shift: true, ...more });
    return promise;
  };
  return { engine, session, draft, embedded, ask };
}

/** The answer of a model without any cache. */
export function expectedText(prompt: string, count: number, next: Next = hashNext): string {
  const tokens = [...new TextEncoder().encode(prompt)];
  const from = tokens.length;
  while (tokens.length < from + count) tokens.push(next(tokens));
  return new TextDecoder().decode(Uint8Array.from(tokens.slice(from)));
}
