/**
 * Embeds texts on the engine's session, one bounded run at a time: encoders read many whole texts per run, other models
 * one text after another through a KV slot, in chunks. The engine calls `step` between its own runs.
 */
import type { Session } from "../program/backend.ts";
import { assert, type Code, codeOf, messageOf } from "../../base/index.ts";
import { EmbedQueue, type EmbedRequest, type EmbedText } from "./embed-queue.ts";
import { addStates, normalized, type Pooling } from "./pooling.ts";
import type { RankHead } from "./rank-head.ts";
import { rowsOf } from "./second-text.ts";
import { forget, type Slot } from "./slots.ts";

/** Tokens per run of an encoder: more would hardly be faster, and a cancel waits for the end of the run. */
const RUN_TOKENS = 1024;

export type EmbedEvent =
  | {
      readonly kind: "embedded";
      readonly id: number;
      /** Indexes of the texts in the request. */
      readonly indexes: readonly number[];
      /** Vectors in sequence, (indexes, dim), each of unit length or zeros; or scores in sequence. */
      readonly vectors: Float32Array;
      /** Total tokens of these texts. */
      readonly tokens: number;
    }
  | { readonly kind: "embedFailed"; readonly id: number; readonly code: Code; readonly message: string };

interface EmbedderParts {
  readonly session: Session;
  readonly pooling: Pooling;
  /** Values per vector. */
  readonly dim: number;
  /** Scores a pooled state; undefined: not a reranker. */
  readonly rank?: RankHead | undefined;
  /** True if it reads whole texts and uses no slots. */
  readonly encoder: boolean;
  readonly emit: (event: EmbedEvent) => void;
}

/** A text in progress in a slot. */
interface Current {
  readonly text: EmbedText;
  readonly slot: Slot;
  readonly sum: Float64Array;
  done: number;
}

/** Owns no resource except the slot that the engine lends it, which it returns after each text. */
export class Embedder {
  readonly #parts: EmbedderParts;
  readonly #queue = new EmbedQueue();
  #current: Current | undefined;

  constructor(parts: EmbedderParts) {
    this.#parts = parts;
  }

  submit(request: EmbedRequest): void {
    this.#queue.add(request);
  }

  /** Drops a request before the next run; no event for it follows. */
  cancel(id: number): void {
    this.#queue.remove(id);
    if (this.#current?.text.id === id) this.#release();
  }

  /** Returns whether `step` has work. */
  get ready(): boolean {
    return this.#current !== undefined || (this.#parts.encoder && this.#queue.size > 0);
  }

  /** Returns whether a text waits for a KV slot. */
  get wantsSlot(): boolean {
    return !this.#parts.encoder && !this.#current && this.#queue.size > 0;
  }

  /** Starts the next text in a free slot and marks the slot busy; returns the text's number of tokens. */
  start(slot: Slot): number {
    const [text] = this.#queue.take({ tokensMax: 0, textsMax: 1 });
    if (!text) return 0;
    slot.busy = true;
    forget(slot);
    this.#current = { text, slot, sum: new Float64Array(this.#parts.dim), done: 0 };
    return text.tokens.length;
  }

  /** Runs once. @param chunk maximum tokens of a text in a slot */
  async step(chunk: number): Promise<void> {
    if (this.#current) return this.#runChunk(this.#current, chunk);
    if (this.#parts.encoder) await this.#runGroup(this.#queue.take({ tokensMax: RUN_TOKENS, textsMax: RUN_TOKENS }));
  }

  async #runGroup(texts: readonly EmbedText[]): Promise<void> {
    if (texts.length === 0) return;
    const { session, pooling, dim, rank } = this.#parts;
    const wanted = pooling === "mean" ? ("all" as const) : pooling;
    let states: Float32Array;
    try {
      const rows = texts.map((text) => ({ slot: 0, start: 0, ...rowsOf(text, rank?.secondText), states: wanted }));
      states = await session.states(rows);
    } catch (error) {
      if (texts.length === 1) return this.#fail(texts[0]!.id, error);
      for (const text of texts) await this.#runGroup([text]); // one bad text must not fail the other requests
      return;
    }
    let at = 0;
    const vectors = texts.map((text) => {
      const { tokens } = text;
      const sum = new Float64Array(dim);
      const end = at + dim * (wanted === "all" ? tokens.length : 1);
      addStates(sum, states.subarray(at, end));
      at = end;
      return this.#finish(text, sum);
    });
    for (const id of new Set(texts.map((text) => text.id))) this.#tell(id, texts, vectors);
  }

  /** Emits the results of a run for one request. */
  #tell(id: number, texts: readonly EmbedText[], vectors: readonly Float32Array[]): void {
    const own = [...texts.keys()].filter((i) => texts[i]!.id === id);
    const dim = vectors[own[0] ?? 0]?.length ?? 0; // all vectors of a request have the same length
    const joined = new Float32Array(own.length * dim);
    for (const [place, i] of own.entries()) joined.set(vectors[i]!, place * dim);
    const indexes = own.map((i) => texts[i]!.index);
    const tokens = own.reduce((sum, i) => sum + texts[i]!.tokens.length, 0);
    this.#parts.emit({ kind: "embedded", id, indexes, vectors: joined, tokens });
  }

  async #runChunk(current: Current, chunk: number): Promise<void> {
    const { text, slot, sum, done } = current;
    const { pooling, session } = this.#parts;
    const { adapters } = text;
    const tokens = text.tokens.subarray(done, done + chunk);
    const isLast = done + tokens.length === text.tokens.length;
    const wanted = pooling === "mean" ? "all" : (pooling === "first" ? done === 0 : isLast) ? pooling : "none";
    try {
      addStates(sum, await session.states([{ slot: slot.index, start: done, tokens, adapters, states: wanted }]));
    } catch (error) {
      return this.#fail(text.id, error);
    }
    current.done += tokens.length;
    if (!isLast || this.#current !== current) return;
    const { id, index } = text;
    const vectors = this.#finish(text, sum);
    this.#parts.emit({ kind: "embedded", id, indexes: [index], vectors, tokens: current.done });
    this.#release();
  }

  /** Makes the requested result from a text's pooled state. */
  #finish({ ranks, tokens }: EmbedText, sum: Float64Array): Float32Array {
    const { rank } = this.#parts;
    assert(!ranks || rank, "a score of a model without a head for it");
    if (!ranks || !rank) return normalized(sum);
    const count = this.#parts.pooling === "mean" ? tokens.length : 1;
    return Float32Array.of(rank.score(sum.map((value) => value / count)));
  }

  #fail(id: number, error: unknown): void {
    this.cancel(id);
    this.#parts.emit({ kind: "embedFailed", id, code: codeOf(error), message: messageOf(error) });
  }

  #release(): void {
    if (this.#current) this.#current.slot.busy = false;
    this.#current = undefined;
  }
}
