/**
 * The engine: one loaded model, a loop of schedule → run → sample → emit, and the sequences that share it. It batches
 * every active sequence in each decode step, interleaves bounded prefill chunks, and reuses the KV of shared prefixes.
 * It knows nothing of processes, HTTP or prompts as text.
 */
import { assert } from "../../base/index.ts";
import { makeBreakers } from "../text/sampling/dry-breakers.ts";
import type { GrammarMatcher } from "../text/sampling/grammar.ts";
import { admit } from "./admit.ts";
import { makeBell } from "./bell.ts";
import { describeToken, makeAnswerTexts, type ChosenLogprob } from "./answer-text.ts";
import { discardedTokens } from "./context.ts";
import { shiftContext } from "./context-shift.ts";
import type { EngineParts } from "./engine-parts.ts";
import type { EmbedRequest } from "./embed-queue.ts";
import { doneEvent, failureOf, promptEvent, say, tellProgress } from "./events.ts";
import { grammarOf, isConstrained } from "./grammars.ts";
import { makeKvBudget, type KvBudget } from "./kv-budget.ts";
import { makeSequence } from "./make-sequence.ts";
import { choose, runWork, type StepOutput } from "./step-output.ts";
import { makePace, type Pace } from "./prefill-pace.ts";
import { makePrefixCache, type PrefixCache } from "./prefix-cache.ts";
import { layOut } from "./prompt.ts";
import { CHECKPOINT_TAIL, schedule, type Work } from "./scheduler.ts";
import {
  inPrefill,
  startOver,
  type FinishReason,
  type Sequence,
  type SequenceEvent,
  type SequenceRequest,
} from "./sequence.ts";
import { makeSpeculation, withoutDrafts, type Speculation } from "./speculation.ts";
import { makeInterleavedPrefill, type InterleavedPrefill } from "./interleaved-prefill.ts";
import { keepPrefix, rollBack, saveCheckpoint } from "./leave-slot.ts";
import { forget, makeSlots, type Slot } from "./slots.ts";

/** Tokens of a text to embed that run between two steps of other sequences. */
const EMBED_SHARED = 64;

/** An engine of texts; `close` releases its sessions. */
export type TextEngine = Pick<Engine, "active" | "busySlots" | "submit" | "embed" | "cancel" | "close">;

/** Owns the session; `close` releases it. */
export class Engine {
  readonly #parts: EngineParts;
  readonly #slots: Slot[];
  readonly #answerText: ReturnType<typeof makeAnswerTexts>;
  readonly #breakers: ReturnType<typeof makeBreakers>;
  readonly #pace: Pace;
  readonly #sliced: InterleavedPrefill;
  /** Undefined: steps with drafts would change the bits of results. */
  readonly #speculation: Speculation | undefined;
  /** Undefined: all slots can hold their maximum. */
  readonly #room: KvBudget | undefined;
  /** Undefined: prefixes stay in their slots. */
  readonly #prefixes: PrefixCache | undefined;
  #waiting: Sequence[] = [];
  #running: Sequence[] = [];
  /** Ids of requests whose grammar is still being compiled; false once cancelled. */
  readonly #preparing = new Map<number, boolean>();
  readonly #bell = makeBell();
  #last: Work["kind"] | undefined;
  #order = 0;
  /** Prompt tokens of all sequences so far. */
  #evaluated = 0;
  /** True if a text to embed gets the next free slot before a waiting sequence does. */
  #embedsNext = false;
  #closed = false;
  readonly #loop: Promise<void>;

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.#slots = makeSlots(parts.slots);
    this.#answerText = makeAnswerTexts(parts.tokenizer);
    this.#breakers = makeBreakers(parts.tokenizer);
    const { chunkAlone, chunkShared } = parts.limits;
    const rowsMax = parts.session.slices?.rowsMax ?? Infinity;
    this.#pace = makePace({ chunkAlone, chunkShared: Math.min(chunkShared, rowsMax) });
    this.#sliced = makeInterleavedPrefill({ ...parts, pace: this.#pace });
    const { session, prefixBytes, freeBytes } = parts;
    const { blocks } = session;
    if (blocks && prefixBytes > 0) {
      const snapshots = parts.snapshots?.(blocks.layout);
      this.#prefixes = makePrefixCache({ blocks, bytesMax: prefixBytes, snapshots, freeBytes });
    }
    if (session.growth) {
      const { kvBytes: bytesMax = Infinity } = parts;
      this.#room = makeKvBudget(session.growth, { slots: this.#slots, bytesMax, freeBytes });
    }
    if (session.verifies) this.#speculation = makeSpeculation(parts);
    this.#loop = this.#run();
  }

  /** Sequences that are waiting or running. */
  get active(): number {
    return this.#waiting.length + this.#running.length + this.#preparing.size;
  }

  /** Slots held by sequences. */
  get busySlots(): number {
    return this.#slots.filter((slot) => slot.busy).length;
  }

  /** Queues a request. All results, failures included, arrive as events. */
  async submit(request: SequenceRequest): Promise<void> {
    this.#preparing.set(request.id, true);
    let grammar: GrammarMatcher | undefined;
    try {
      if (isConstrained(request)) grammar = await grammarOf(request, this.#parts); // meanwhile others are queued
      if (!this.#preparing.get(request.id)) return grammar?.dispose();
      const { ctxLen, vocabSize, tokenizer } = this.#parts;
      const layout = layOut(request.prompt);
      const own = { ctxLen, vocabSize, tokenizer, grammar, answerText: this.#answerText, breakers: this.#breakers };
      this.#waiting.push(makeSequence(request, layout, own));
      this.#bell.ring();
    } catch (error) {
      grammar?.dispose();
      if (this.#preparing.get(request.id)) this.#parts.emit([failureOf(request.id, error)]);
    } finally {
      this.#preparing.delete(request.id);
    }
  }

  /** Queues texts; the embedder reports their results. */
  embed(request: EmbedRequest): void {
    this.#parts.embedder.submit(request);
    this.#bell.ring();
  }

  /** Ends a request before the next step; it emits nothing more. */
  cancel(id: number): void {
    this.#parts.embedder.cancel(id);
    if (this.#preparing.has(id)) this.#preparing.set(id, false);
    for (const sequence of [...this.#waiting, ...this.#running]) if (sequence.id === id) sequence.cancelled = true;
    this.#bell.ring();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#bell.ring();
    await this.#loop;
    for (const sequence of [...this.#waiting, ...this.#running]) sequence.grammar?.dispose();
    await this.#prefixes?.close();
    this.#speculation?.close();
    this.#parts.session.close();
  }

  async #run(): Promise<void> {
    await this.#prefixes?.ready;
    while (!this.#closed) {
      this.#bell.hush();
      await this.#dropCancelled();
      await this.#admit();
      const { embedder, session } = this.#parts;
      const { limits } = this.#pace;
      const tail = session.checkpoints ? CHECKPOINT_TAIL : 0;
      const isExact = session.verifies ?? false;
      const work = schedule(this.#running, { last: this.#last, limits, tail, isExact });
      if (!work && !embedder.ready) {
        await this.#bell.rung();
        continue;
      }
      if (work) await this.#step(work);
      await embedder.step(work ? Math.min(EMBED_SHARED, limits.chunkShared) : limits.chunkAlone);
      await this.#parts.loop.nextTurn(); // handles messages: a cancel takes effect at the next step
    }
  }

  async #step(work: Work): Promise<void> {
    const victim = this.#room?.victim(work, this.#running);
    const slot = victim?.sequence.slot;
    if (victim && !victim.error) {
      await this.#vacate(victim.sequence);
      this.#waiting.unshift(victim.sequence);
      if (slot) this.#room?.release(slot); // the slot may hold far more than the sequence, which starts over there
      return;
    }
    this.#last = work.kind;
    const events: SequenceEvent[] = [];
    if (victim) {
      await this.#fail(victim.sequence, victim.error, events);
      if (slot) this.#room?.release(slot);
    } else if (this.#sliced.takes(work, this.#isShared)) await this.#runPart(work, events);
    else await this.#runWork((await this.#speculation?.extend(work)) ?? work, events);
    if (events.length > 0) this.#parts.emit(events);
  }

  async #runWork(work: Work, events: SequenceEvent[]): Promise<void> {
    const startedNs = this.#parts.loop.nowNs();
    let outputs: (readonly StepOutput[])[];
    try {
      outputs = await runWork(work, this.#parts);
    } catch (error) {
      const { kind, rows, sequences } = work;
      const { session } = this.#parts;
      const hasDrafts = kind === "decode" && rows.some(({ drafted }) => drafted);
      if (hasDrafts) return this.#runWork(withoutDrafts(work, session), events);
      if (sequences.length === 1) return await this.#fail(sequences[0]!, error, events);
      // one bad sequence must not fail the others: each runs again alone
      if (session.checkpoints) return sequences.forEach(startOver); // the states include the step already
      for (const [i, sequence] of sequences.entries()) {
        await this.#runWork({ kind, rows: [rows[i]!], sequences: [sequence] }, events);
      }
      return;
    }
    const tookNs = this.#parts.loop.nowNs() - startedNs;
    this.#speculation?.took(work, tookNs);
    this.#pace.took(work, tookNs, this.#isShared);
    await this.#goOn(work, { outputs, tookNs }, events);
  }

  /** Returns whether another sequence waits for its next token. */
  get #isShared(): boolean {
    return this.#running.some((sequence) => !inPrefill(sequence));
  }

  async #runPart(next: Work, events: SequenceEvent[]): Promise<void> {
    const work = this.#sliced.work ?? next;
    try {
      const done = await this.#sliced.run(next, this.#isShared);
      if (done) await this.#goOn(done.work, done, events);
    } catch (error) {
      await this.#fail(work.sequences[0]!, error, events);
    }
  }

  /** Processes the result of a run. */
  async #goOn(
    work: Work,
    { outputs, tookNs }: { outputs: readonly (readonly StepOutput[])[]; tookNs: number },
    events: SequenceEvent[],
  ): Promise<void> {
    for (const [i, sequence] of work.sequences.entries()) {
      const { tokens, drafted } = work.rows[i]!;
      if (drafted && work.kind === "decode") {
        await this.#verify(sequence, { tokens, outputs: outputs[i]! }, events);
        continue;
      }
      this.#cache(sequence, tokens.length);
      if (work.kind === "prefill") {
        sequence.promptEvalNs += tookNs;
        this.#evaluated += tokens.length;
        tellProgress(sequence, events);
        await saveCheckpoint(sequence, this.#parts);
      }
      const [last] = outputs[i]!.slice(-1);
      if (last && sequence.cached === sequence.tokens.length) await this.#decodeOne(sequence, last, events);
    }
  }

  /** Accepts drafted tokens one by one, as long as they equal the sampled ones. */
  async #verify(
    sequence: Sequence,
    { tokens, outputs }: { tokens: Int32Array; outputs: readonly StepOutput[] },
    events: SequenceEvent[],
  ): Promise<void> {
    let right = -1;
    for (const [row, output] of outputs.entries()) {
      if (sequence.tokens.at(-1) !== tokens[row]) break;
      right++;
      this.#cache(sequence, 1);
      await this.#decodeOne(sequence, output, events);
      if (!sequence.slot || sequence.cancelled) break;
    }
    this.#speculation?.recordAccepted(sequence, right);
  }

  /** Records that tokens are now in the sequence's slot. */
  #cache(sequence: Sequence, count: number): void {
    const slot = sequence.slot;
    assert(slot, `sequence ${sequence.id} ran without a slot`);
    const end = sequence.cached + count;
    if (!slot.shifted) for (let i = sequence.cached; i < end; i++) slot.tokens.push(sequence.tokens[i]!);
    sequence.cached = end;
  }

  /** Samples the next token of a sequence and emits its text, or ends the sequence. */
  async #decodeOne(sequence: Sequence, output: StepOutput, events: SequenceEvent[]): Promise<void> {
    if (sequence.cancelled) return;
    try {
      if (sequence.firstTokenAtNs === 0) {
        sequence.firstTokenAtNs = this.#parts.loop.nowNs();
        events.push(promptEvent(sequence));
      }
      if (sequence.generated.length >= sequence.predictMax) return await this.#finish(sequence, "length", events);
      const { logprobs: count } = sequence.request;
      // All logits were read back for log-probabilities; copies them before sampling modifies them.
      const before = count !== undefined && output instanceof Float32Array ? output.slice() : undefined;
      const id = await choose(output, sequence);
      sequence.sampler.accept(id);
      sequence.tokens.push(id);
      sequence.generated.push(id);
      const { tokenizer } = this.#parts;
      const chosen = before && describeToken(tokenizer, { logits: before, id, count: count ?? 0 });
      if (tokenizer.endOfGeneration.has(id)) return await this.#finish(sequence, "stop", events, chosen);
      const piece = sequence.text.push(id, chosen);
      say(sequence, piece, events);
      sequence.stopSequence = piece.stop;
      if (piece.stop !== undefined) return await this.#finish(sequence, "stop", events);
      sequence.grammar?.accept(id);
      if (await sequence.grammar?.isOver()) return await this.#finish(sequence, "stop", events);
      if (sequence.generated.length >= sequence.predictMax) return await this.#finish(sequence, "length", events);
      if (sequence.cached >= this.#parts.ctxLen) await this.#makeRoom(sequence, events);
    } catch (error) {
      await this.#fail(sequence, error, events);
    }
  }

  /** At a full window, drops the middle and continues, or ends the answer. */
  async #makeRoom(sequence: Sequence, events: SequenceEvent[]): Promise<void> {
    const slot = sequence.slot;
    assert(slot, `sequence ${sequence.id} decodes without a slot`);
    const length = sequence.cached;
    const keep = Math.min(sequence.keep, length - 1);
    const fill = sequence.request.options.num_predict === -2;
    const mayShift = sequence.request.shift && !this.#parts.fixedContext;
    const isFixed = !mayShift || fill || sequence.media.length > 0;
    if (isFixed || keep >= length - 1) return await this.#finish(sequence, "length", events);
    shiftContext(sequence, { slot, keep, discard: discardedTokens({ length, keep }) }, this.#parts.session);
  }

  async #finish(
    sequence: Sequence,
    reason: FinishReason,
    events: SequenceEvent[],
    last?: ChosenLogprob,
  ): Promise<void> {
    if (sequence.stopSequence === undefined) say(sequence, sequence.text.end(last), events);
    const { loop, tokenizer } = this.#parts;
    events.push(doneEvent(sequence, { reason, nowNs: loop.nowNs(), tokenizer }));
    await this.#release(sequence);
  }

  async #fail(sequence: Sequence, error: unknown, events: SequenceEvent[]): Promise<void> {
    if (!sequence.slot) return;
    forget(sequence.slot); // the cache content after a failed run is unknown
    events.push(failureOf(sequence.id, error));
    await this.#release(sequence);
  }

  async #release(sequence: Sequence): Promise<void> {
    await this.#vacate(sequence);
    sequence.grammar?.dispose();
  }

  /** Removes a sequence from its slot; keeps a copy of its prefix if there is memory for it. */
  async #vacate(sequence: Sequence): Promise<void> {
    const { slot } = sequence;
    if (this.#sliced.drop(sequence) && slot && this.#parts.session.checkpoints) forget(slot); // its states are in use
    if (slot && !slot.shifted && slot.tokens.length === sequence.cached) rollBack(sequence, slot, this.#parts.session);
    await saveCheckpoint(sequence, this.#parts);
    if (slot) await keepPrefix(slot, this.#prefixes);
    if (slot) slot.busy = false;
    sequence.slot = undefined;
    sequence.cached = 0;
    this.#running = this.#running.filter((other) => other !== sequence);
  }

  async #dropCancelled(): Promise<void> {
    for (const sequence of this.#running.filter((each) => each.cancelled)) await this.#release(sequence);
    for (const sequence of this.#waiting) if (sequence.cancelled) sequence.grammar?.dispose();
    this.#waiting = this.#waiting.filter((sequence) => !sequence.cancelled);
  }

  /** Gives free slots to waiting sequences in order of arrival, alternating with texts to embed. */
  async #admit(): Promise<void> {
    const { embedder } = this.#parts;
    for (;;) {
      const free = this.#slots.filter((slot) => !slot.busy);
      const [sequence] = this.#waiting;
      if (free.length === 0) return;
      const waits = sequence && !(this.#room?.admits(sequence, this.#running) ?? true);
      if (embedder.wantsSlot && (this.#embedsNext || !sequence || waits)) {
        const oldest = free.reduce((a, b) => (b.usedAt < a.usedAt ? b : a));
        oldest.usedAt = ++this.#order;
        const tokens = embedder.start(oldest);
        this.#room?.embeds(oldest, tokens);
        this.#embedsNext = false;
      } else if (sequence && !waits) {
        const { session } = this.#parts;
        try {
          await admit(sequence, { slots: this.#slots, session, prefixes: this.#prefixes, order: ++this.#order });
          sequence.due = this.#evaluated + sequence.tokens.length - sequence.cached;
          this.#running.push(sequence);
          const events: SequenceEvent[] = [];
          tellProgress(sequence, events);
          if (events.length > 0) this.#parts.emit(events);
        } catch (error) {
          sequence.grammar?.dispose();
          for (const slot of free) forget(slot); // a slot may be half written
          this.#parts.emit([failureOf(sequence.id, error)]);
        }
        this.#waiting.shift(); // only now, because it may be cancelled while it waits
        this.#embedsNext = true;
      } else return;
    }
  }
}
