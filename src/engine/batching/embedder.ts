/**
 * Embeds texts on the engine's session, one bounded run at a time: an encoder many whole texts at once, any other model
 * one text after the other through a KV slot, in chunks. The engine calls `step` between its own runs.
 */
import type { Session } from "../program/backend.ts";
import { AppError, assert, type Code, messageOf } from "../../base/index.ts";
import { EmbedQueue, type EmbedRequest, type EmbedText } from "./embed-queue.ts";
import { addStates, normalized, type Pooling } from "./pooling.ts";
import type { RankHead } from "./rank-head.ts";
import { forget, type Slot } from "./slots.ts";

/** Tokens of one run of an encoder: more are hardly faster, and a cancel waits for the end of the run. */
const RUN_TOKENS = 1024;

export type EmbedEvent =
  | {
      readonly kind: "embedded";
      readonly id: number;
      /** Places of the texts among the request's. */
      readonly indexes: readonly number[];
      /** One vector after the other, (indexes, dim), each of unit length or zeros; or one score after the other. */
      readonly vectors: Float32Array;
      /** Tokens of these texts. */
      readonly tokens: number;
    }
  | { readonly kind: "embedFailed"; readonly id: number; readonly code: Code; readonly message: string };

interface EmbedderParts {
  readonly session: Session;
  readonly pooling: Pooling;
  /** Values of a vector. */
  readonly dim: number;
  /** Scores a pooled state; undefined: the model does not rank. */
  readonly rank?: RankHead | undefined;
  /** Reads whole texts, and keeps nothing in slots. */
  readonly encoder: boolean;
  readonly emit: (event: EmbedEvent) => void;
}

/** A text on its way through a slot. */
interface Current {
  readonly text: EmbedText;
  readonly slot: Slot;
  readonly sum: Float64Array;
  done: number;
}

/** Owns no resource but the slot that the engine gives it, which it hands back after each text. */
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

  /** Forgets a request before the next run; nothing more is said of it. */
  cancel(id: number): void {
    this.#queue.remove(id);
    if (this.#current?.text.id === id) this.#release();
  }

  /** Whether `step` has something to do. */
  get ready(): boolean {
    return this.#current !== undefined || (this.#parts.encoder && this.#queue.size > 0);
  }

  /** Whether a text waits for a KV slot. */
  get wantsSlot(): boolean {
    return !this.#parts.encoder && !this.#current && this.#queue.size > 0;
  }

  /** Starts the next text in a free slot, which is busy from then on; how many tokens it has. */
  start(slot: Slot): number {
    const [text] = this.#queue.take({ tokensMax: 0, textsMax: 1 });
    if (!text) return 0;
    slot.busy = true;
    forget(slot);
    this.#current = { text, slot, sum: new Float64Array(this.#parts.dim), done: 0 };
    return text.tokens.length;
  }

  /** One run. @param chunk most tokens of a text that goes through a slot */
  async step(chunk: number): Promise<void> {
    if (this.#current) return this.#runChunk(this.#current, chunk);
    if (this.#parts.encoder) await this.#runGroup(this.#queue.take({ tokensMax: RUN_TOKENS, textsMax: RUN_TOKENS }));
  }

  async #runGroup(texts: readonly EmbedText[]): Promise<void> {
    if (texts.length === 0) return;
    const { session, pooling, dim } = this.#parts;
    const wanted = pooling === "mean" ? "all" : pooling;
    let states: Float32Array;
    try {
      states = await session.states(texts.map(({ tokens }) => ({ slot: 0, start: 0, tokens, states: wanted })));
    } catch (error) {
      if (texts.length === 1) return this.#fail(texts[0]!.id, error);
      for (const text of texts) await this.#runGroup([text]); // one broken text must not end the others' requests
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

  /** Says what a run found for one request. */
  #tell(id: number, texts: readonly EmbedText[], vectors: readonly Float32Array[]): void {
    const own = [...texts.keys()].filter((i) => texts[i]!.id === id);
    const dim = vectors[own[0] ?? 0]?.length ?? 0; // of one request all are of a length
    const joined = new Float32Array(own.length * dim);
    for (const [place, i] of own.entries()) joined.set(vectors[i]!, place * dim);
    const indexes = own.map((i) => texts[i]!.index);
    const tokens = own.reduce((sum, i) => sum + texts[i]!.tokens.length, 0);
    this.#parts.emit({ kind: "embedded", id, indexes, vectors: joined, tokens });
  }

  async #runChunk(current: Current, chunk: number): Promise<void> {
    const { text, slot, sum, done } = current;
    const { pooling, session } = this.#parts;
    const tokens = text.tokens.subarray(done, done + chunk);
    const isLast = done + tokens.length === text.tokens.length;
    const wanted = pooling === "mean" ? "all" : (pooling === "first" ? done === 0 : isLast) ? pooling : "none";
    try {
      addStates(sum, await session.states([{ slot: slot.index, start: done, tokens, states: wanted }]));
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

  /** What is wanted of a text's pooled state. */
  #finish({ ranks }: EmbedText, sum: Float64Array): Float32Array {
    const { rank } = this.#parts;
    assert(!ranks || rank, "a score of a model without a head for it");
    return ranks && rank ? Float32Array.of(rank.score(sum)) : normalized(sum);
  }

  #fail(id: number, error: unknown): void {
    this.cancel(id);
    const code = error instanceof AppError ? error.code : "runner";
    this.#parts.emit({ kind: "embedFailed", id, code, message: messageOf(error) });
  }

  #release(): void {
    if (this.#current) this.#current.slot.busy = false;
    this.#current = undefined;
  }
}
