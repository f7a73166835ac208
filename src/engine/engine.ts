/**
 * The engine: one loaded model, a loop of schedule → run → sample → emit, and the sequences that share it. It batches
 * every active sequence in each decode step, interleaves bounded prefill chunks, and reuses the KV of shared prefixes.
 * It knows nothing of processes, HTTP or prompts as text.
 */
import type { Session } from "../backend/backend.ts";
import type { EventLoop } from "../base/event-loop.ts";
import { AppError, assert, messageOf } from "../base/errors.ts";
import type { GrammarCompiler, GrammarMatcher } from "../sampling/grammar.ts";
import type { Offer } from "../sampling/offer.ts";
import { makeSampler } from "../sampling/sampler.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { describeToken, makeAnswerText, type AnswerPiece } from "./answer-text.ts";
import { answerRoom, discardedTokens, keptTokens, truncatePrompt } from "./context.ts";
import type { EmbedRequest } from "./embed-queue.ts";
import type { Embedder } from "./embedder.ts";
import { runWork, sampleFrom, type Outcome } from "./outcome.ts";
import { makeLayouts, wholeLength } from "./prompt.ts";
import { CHECKPOINT_TAIL, schedule, type ScheduleLimits, type Work } from "./scheduler.ts";
import {
  conversationOf,
  statisticsOf,
  type FinishReason,
  type Sequence,
  type SequenceEvent,
  type SequenceRequest,
} from "./sequence.ts";
import { forget, keepCheckpoint, makeSlots, placePrompt, takeSlot, type Placement, type Slot } from "./slots.ts";

/** An answer without a limit of its own ends after this many context lengths. */
const PREDICT_MAX_CONTEXTS = 10;

interface EngineParts {
  readonly session: Session;
  readonly loop: EventLoop;
  readonly tokenizer: Tokenizer;
  /** Made when the first request with a format arrives. */
  readonly grammars: () => Promise<GrammarCompiler>;
  readonly vocabSize: number;
  readonly ctxLen: number;
  readonly slots: number;
  readonly limits: ScheduleLimits;
  readonly embedder: Embedder;
  /** Receives all events of one step at once. */
  readonly emit: (events: readonly SequenceEvent[]) => void;
}

/** Owns the session; `close` releases it. */
export class Engine {
  readonly #parts: EngineParts;
  readonly #slots: Slot[];
  readonly #layOut = makeLayouts();
  #waiting: Sequence[] = [];
  #running: Sequence[] = [];
  /** Ids of requests whose grammar is still being compiled; false once cancelled. */
  readonly #preparing = new Map<number, boolean>();
  #wake: (() => void) | undefined;
  #last: Work["kind"] | undefined;
  #order = 0;
  /** Whether a text to embed takes the next free slot before a waiting sequence does. */
  #embedsNext = false;
  #closed = false;
  readonly #loop: Promise<void>;

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.#slots = makeSlots(parts.slots);
    this.#loop = this.#run();
  }

  /** Sequences that are waiting or running. */
  get active(): number {
    return this.#waiting.length + this.#running.length + this.#preparing.size;
  }

  /** Slots that a sequence holds. */
  get busySlots(): number {
    return this.#slots.filter((slot) => slot.busy).length;
  }

  /** Queues a request. Everything that follows, failure too, arrives as events. */
  async submit(request: SequenceRequest): Promise<void> {
    this.#preparing.set(request.id, true);
    try {
      const grammar = request.format ? await (await this.#parts.grammars()).matcher(request.format) : undefined;
      if (!this.#preparing.get(request.id)) return grammar?.dispose();
      this.#waiting.push(this.#sequenceOf(request, grammar));
      this.#wake?.();
    } catch (error) {
      if (this.#preparing.get(request.id)) this.#parts.emit([failureOf(request.id, error)]);
    } finally {
      this.#preparing.delete(request.id);
    }
  }

  /** Queues texts; what becomes of them is told by the embedder. */
  embed(request: EmbedRequest): void {
    this.#parts.embedder.submit(request);
    this.#wake?.();
  }

  /** Ends a request before the next step; it emits nothing more. */
  cancel(id: number): void {
    this.#parts.embedder.cancel(id);
    if (this.#preparing.has(id)) this.#preparing.set(id, false);
    for (const sequence of [...this.#waiting, ...this.#running]) if (sequence.id === id) sequence.cancelled = true;
    this.#wake?.();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake?.();
    await this.#loop;
    for (const sequence of [...this.#waiting, ...this.#running]) sequence.grammar?.dispose();
    this.#parts.session.close();
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      this.#dropCancelled();
      this.#admit();
      const { embedder, limits, session } = this.#parts;
      const tail = session.checkpoints ? CHECKPOINT_TAIL : 0;
      const work = schedule(this.#running, { last: this.#last, limits, tail });
      if (!work && !embedder.ready) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        this.#wake = undefined;
        continue;
      }
      if (work) await this.#step(work);
      await embedder.step(work ? limits.chunkShared : limits.chunkAlone);
      await this.#parts.loop.nextTurn(); // lets messages in: a cancel takes effect at the next step
    }
  }

  async #step(work: Work): Promise<void> {
    this.#last = work.kind;
    const events: SequenceEvent[] = [];
    await this.#runWork(work, events);
    if (events.length > 0) this.#parts.emit(events);
  }

  async #runWork(work: Work, events: SequenceEvent[]): Promise<void> {
    const startedNs = this.#parts.loop.nowNs();
    let outcomes: Outcome[];
    try {
      outcomes = await runWork(work, this.#parts);
    } catch (error) {
      const { kind, rows, sequences } = work;
      if (sequences.length === 1) return this.#fail(sequences[0]!, error, events);
      // one broken sequence must not end the others: each once more, alone
      if (this.#parts.session.checkpoints) return sequences.forEach(startOver); // its states are a step ahead
      for (const [i, sequence] of sequences.entries()) {
        await this.#runWork({ kind, rows: [rows[i]!], sequences: [sequence] }, events);
      }
      return;
    }
    const tookNs = this.#parts.loop.nowNs() - startedNs;
    for (const [i, sequence] of work.sequences.entries()) {
      this.#cache(sequence, work.rows[i]!.tokens.length);
      if (work.kind === "prefill") {
        sequence.promptEvalNs += tookNs;
        this.#checkpoint(sequence);
      }
      const outcome = outcomes[i];
      if (outcome) await this.#decodeOne(sequence, outcome, events);
    }
  }

  /** Records that tokens are in the sequence's slot now. */
  #cache(sequence: Sequence, count: number): void {
    const slot = sequence.slot;
    assert(slot, `sequence ${sequence.id} ran without a slot`);
    const end = sequence.cached + count;
    if (!slot.shifted) for (let i = sequence.cached; i < end; i++) slot.tokens.push(sequence.tokens[i]!);
    sequence.cached = end;
  }

  /** Puts aside where a sequence's slot stands, where it could not be taken back there otherwise. */
  #checkpoint({ slot, cached }: Sequence): void {
    const { session, slots } = this.#parts;
    if (!session.checkpoints || !slot || slot.shifted || slot.tokens.length !== cached) return;
    keepCheckpoint(slot, session.checkpoints.save(slot.index, cached), { slots });
  }

  /** Chooses the next token of a sequence and says what that adds, or ends it. */
  async #decodeOne(sequence: Sequence, outcome: Float32Array | Offer, events: SequenceEvent[]): Promise<void> {
    if (sequence.cancelled) return;
    try {
      if (sequence.firstTokenAtNs === 0) {
        sequence.firstTokenAtNs = this.#parts.loop.nowNs();
        events.push(promptEvent(sequence));
      }
      if (sequence.generated.length >= sequence.predictMax) return this.#finish(sequence, "length", events);
      const { logprobs: count } = sequence.request;
      // Sampling changes logits, and whoever wants log-probabilities was given all.
      const before = count !== undefined && outcome instanceof Float32Array ? outcome.slice() : undefined;
      const id = sampleFrom(outcome, sequence, await sequence.grammar?.mask());
      sequence.sampler.accept(id);
      sequence.tokens.push(id);
      sequence.generated.push(id);
      if (this.#parts.tokenizer.endOfGeneration.has(id)) return this.#finish(sequence, "stop", events);
      const { tokenizer } = this.#parts;
      const chosen = before && describeToken(tokenizer, { logits: before, id, count: count ?? 0 });
      const piece = sequence.text.push(id, chosen);
      say(sequence, piece, events);
      sequence.stopSequence = piece.stop;
      if (piece.stop !== undefined) return this.#finish(sequence, "stop", events);
      sequence.grammar?.accept(id);
      if (sequence.grammar?.terminated) return this.#finish(sequence, "stop", events);
      if (sequence.generated.length >= sequence.predictMax) return this.#finish(sequence, "length", events);
      if (sequence.cached >= this.#parts.ctxLen) this.#makeRoom(sequence, events);
    } catch (error) {
      this.#fail(sequence, error, events);
    }
  }

  /** The window is full: drops the middle and goes on, or ends the answer. */
  #makeRoom(sequence: Sequence, events: SequenceEvent[]): void {
    const slot = sequence.slot;
    assert(slot, `sequence ${sequence.id} decodes without a slot`);
    const length = sequence.cached;
    const keep = Math.min(sequence.keep, length - 1);
    const fill = sequence.request.options.num_predict === -2;
    const isFixed = !sequence.request.shift || fill || sequence.media.length > 0;
    if (isFixed || keep >= length - 1) return this.#finish(sequence, "length", events);
    const discard = discardedTokens({ length, keep });
    this.#parts.session.shift(slot.index, { keep, discard, length });
    slot.tokens.length = Math.min(slot.tokens.length, keep);
    slot.checkpoints = slot.checkpoints.filter((each) => each.length <= keep);
    slot.shifted = true;
    sequence.tokens.splice(keep, discard);
    sequence.truncated ||= keep < sequence.prompt.length;
    sequence.cached -= discard;
  }

  #finish(sequence: Sequence, reason: FinishReason, events: SequenceEvent[]): void {
    const { stopSequence, truncated } = sequence;
    if (stopSequence === undefined) say(sequence, sequence.text.end(), events);
    events.push({
      kind: "done",
      id: sequence.id,
      reason,
      statistics: statisticsOf(sequence, this.#parts.loop.nowNs()),
      tokens: conversationOf(sequence),
      ...(truncated ? { truncated } : {}),
      ...(stopSequence === undefined ? {} : { stopSequence }),
    });
    this.#release(sequence);
  }

  #fail(sequence: Sequence, error: unknown, events: SequenceEvent[]): void {
    if (!sequence.slot) return;
    forget(sequence.slot); // what a failed run left in the cache is unknown
    events.push(failureOf(sequence.id, error));
    this.#release(sequence);
  }

  #release(sequence: Sequence): void {
    this.#checkpoint(sequence);
    if (sequence.slot) sequence.slot.busy = false;
    sequence.slot = undefined;
    sequence.grammar?.dispose();
    this.#running = this.#running.filter((other) => other !== sequence);
  }

  #dropCancelled(): void {
    for (const sequence of this.#running.filter((each) => each.cancelled)) this.#release(sequence);
    for (const sequence of this.#waiting) if (sequence.cancelled) sequence.grammar?.dispose();
    this.#waiting = this.#waiting.filter((sequence) => !sequence.cancelled);
  }

  /** Gives free slots to waiting sequences, first come first served, in turn with texts to embed. */
  #admit(): void {
    const { embedder } = this.#parts;
    for (;;) {
      const free = this.#slots.filter((slot) => !slot.busy);
      const [sequence] = this.#waiting;
      if (free.length === 0) return;
      if (embedder.wantsSlot && (this.#embedsNext || !sequence)) {
        const oldest = free.reduce((a, b) => (b.usedAt < a.usedAt ? b : a));
        oldest.usedAt = ++this.#order;
        embedder.start(oldest);
        this.#embedsNext = false;
      } else if (sequence) {
        this.#waiting.shift();
        this.#admitSequence(sequence);
        this.#embedsNext = true;
      } else return;
    }
  }

  #admitSequence(sequence: Sequence): void {
    const { session } = this.#parts;
    const placement = placePrompt(this.#slots, sequence.tokens, {
      anyLength: session.checkpoints === undefined,
      whole: (length) => wholeLength(sequence.media, length),
    });
    assert(placement, "a sequence is admitted while all slots are busy");
    const { slot, reused, copyFrom } = placement;
    if (copyFrom) session.copy({ from: copyFrom.index, to: slot.index, length: reused });
    this.#goBack(placement);
    takeSlot(placement, ++this.#order);
    sequence.slot = slot;
    sequence.cached = reused;
    sequence.reused = reused;
    this.#running.push(sequence);
  }

  /** Takes the states of a slot to where its prompt goes on. A run from 0 begins them anew. */
  #goBack({ slot, reused, copyFrom }: Placement): void {
    const { checkpoints } = this.#parts.session;
    const source = copyFrom ?? slot;
    const stands = !source.shifted && source.tokens.length === reused;
    if (!checkpoints || reused === 0 || (stands && source === slot)) return;
    const kept = source.checkpoints.find(({ length }) => length === reused);
    checkpoints.restore(slot.index, kept ?? checkpoints.save(source.index, reused));
  }

  #sequenceOf(request: SequenceRequest, grammar: GrammarMatcher | undefined): Sequence {
    const { ctxLen, vocabSize, tokenizer } = this.#parts;
    const { options } = request;
    const { ids: prompt, keys, media } = this.#layOut(request.prompt);
    if (prompt.length === 0) throw new AppError("bad_request", "the prompt has no tokens");
    const startsWithBos = tokenizer.bos !== undefined && prompt[0] === tokenizer.bos;
    const keep = keptTokens(options.num_keep, { promptLen: prompt.length, ctxLen, startsWithBos });
    const mayCut = request.shift && (request.truncate ?? true) && media.length === 0;
    if (prompt.length >= ctxLen && !mayCut) throw tooLong(prompt.length, ctxLen);
    const room = answerRoom({ ctxLen, numPredict: options.num_predict });
    const tokens = truncatePrompt(prompt, { ctxLen, keep, room });
    const unlimited = options.num_predict < 0 || options.num_predict > PREDICT_MAX_CONTEXTS * ctxLen;
    const sampler = makeSampler(options, {
      vocabSize,
      ctxLen,
      ...(tokenizer.newlineId === undefined ? {} : { newlineId: tokenizer.newlineId }),
    });
    for (const token of tokens) if (token >= 0) sampler.accept(token);
    return {
      id: request.id,
      request,
      sampler,
      grammar,
      text: makeAnswerText(tokenizer, { stops: options.stop, visible: request.visible }),
      tokens: tokens.length < prompt.length ? Array.from(tokens) : [...keys],
      prompt: tokens,
      media,
      keep,
      predictMax: unlimited ? PREDICT_MAX_CONTEXTS * ctxLen : options.num_predict,
      generated: [],
      slot: undefined,
      cached: 0,
      reused: 0,
      cancelled: false,
      truncated: tokens.length < prompt.length || request.wasCut === true,
      stopSequence: undefined,
      promptEvalNs: 0,
      firstTokenAtNs: 0,
    };
  }
}

/** Its tokens, prompt and answer so far, are evaluated again from the start. */
function startOver(sequence: Sequence): void {
  if (sequence.slot) forget(sequence.slot);
  sequence.cached = 0;
}

function say({ id }: Sequence, { text, logprobs }: AnswerPiece, events: SequenceEvent[]): void {
  if (text === "" && !logprobs) return;
  events.push({ kind: "text", id, text, ...(logprobs ? { logprobs } : {}) });
}

const promptEvent = ({ id, prompt, reused, request }: Sequence): SequenceEvent => ({
  kind: "prompt",
  id,
  tokens: prompt.length,
  cached: reused,
  end: request.promptEnd,
});

/** In the words that clients look for, with the two numbers. */
const tooLong = (promptLen: number, ctxLen: number): AppError =>
  new AppError(
    "bad_request",
    "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the " +
      "context length in settings, or use a model with a longer context length " +
      `(the prompt has ${promptLen} tokens, the context room for ${ctxLen - 1} and an answer)`,
  );

function failureOf(id: number, error: unknown): SequenceEvent {
  const code = error instanceof AppError ? error.code : "runner";
  return { kind: "error", id, code, message: messageOf(error) };
}
