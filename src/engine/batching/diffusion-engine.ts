/**
 * The engine of a model that answers by filling in masks: prompt and masked answer run as a whole, and each pass turns
 * some masks into tokens. Requests alternate, one pass each. There is no KV cache: a token that appears changes the
 * keys and values of all rows, also in the prompt. Text is sent as soon as all tokens before it are known.
 */
import type { Session } from "../program/backend.ts";
import type { DiffusionTraits } from "../program/diffusion.ts";
import { AppError } from "../../base/index.ts";
import type { DiffusionAlgorithm } from "../text/sampling/diffusion-options.ts";
import { makeBreakers } from "../text/sampling/dry-breakers.ts";
import { makeRng, randomSeed } from "../text/rng.ts";
import { makeAnswerTexts } from "./answer-text.ts";
import { makeBell } from "./bell.ts";
import { Denoising, rankBy } from "./denoising.ts";
import { planPasses } from "./diffusion-plan.ts";
import type { EmbedRequest } from "./embed-queue.ts";
import type { EngineParts } from "./engine-parts.ts";
import type { TextEngine } from "./engine.ts";
import { doneEvent, failureOf, promptEvent, say, tellProgress } from "./events.ts";
import { HEAD_ROWS } from "./load-diffusion.ts";
import { makeSequence } from "./make-sequence.ts";
import { layOut } from "./prompt.ts";
import type { FinishReason, Sequence, SequenceEvent, SequenceRequest } from "./sequence.ts";

/** Tokens of an answer without `num_predict`. */
const ANSWER_TOKENS = 256;
/** Tokens of a block, for models that were trained with blocks. */
const BLOCK_TOKENS = 32;

interface DiffusionParts extends Pick<
  EngineParts,
  "session" | "loop" | "tokenizer" | "vocabSize" | "ctxLen" | "slots" | "embedder" | "emit"
> {
  /** Computes logits of states. */
  readonly head: Session;
  readonly traits: DiffusionTraits;
  /** Size of states. */
  readonly dim: number;
}

interface Answer {
  readonly sequence: Sequence;
  readonly denoising: Denoising;
  /** The prompt's event is out. */
  isPromptReported: boolean;
}

/** Owns both sessions; `close` releases them. */
export class DiffusionEngine implements TextEngine {
  readonly #parts: DiffusionParts;
  readonly #answerText: ReturnType<typeof makeAnswerTexts>;
  readonly #breakers: ReturnType<typeof makeBreakers>;
  readonly #bell = makeBell();
  #waiting: Answer[] = [];
  /** The first one gets the next pass. */
  #running: Answer[] = [];
  #closed = false;
  readonly #loop: Promise<void>;

  constructor(parts: DiffusionParts) {
    this.#parts = parts;
    this.#answerText = makeAnswerTexts(parts.tokenizer);
    this.#breakers = makeBreakers(parts.tokenizer);
    this.#loop = this.#run();
  }

  get active(): number {
    return this.#waiting.length + this.#running.length;
  }

  get busySlots(): number {
    return this.#running.length;
  }

  async submit(request: SequenceRequest): Promise<void> {
    try {
      checkRequest(request);
      this.#waiting.push(this.#begin(request));
      this.#bell.ring();
    } catch (error) {
      this.#parts.emit([failureOf(request.id, error)]);
    }
  }

  embed(request: EmbedRequest): void {
    this.#parts.embedder.submit(request);
    this.#bell.ring();
  }

  cancel(id: number): void {
    this.#parts.embedder.cancel(id);
    for (const { sequence } of [...this.#waiting, ...this.#running]) if (sequence.id === id) sequence.cancelled = true;
    this.#bell.ring();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#bell.ring();
    await this.#loop;
    this.#parts.head.close();
    this.#parts.session.close();
  }

  #begin(request: SequenceRequest): Answer {
    const { ctxLen, vocabSize, tokenizer, traits } = this.#parts;
    const own = { ctxLen, vocabSize, grammar: undefined, answerText: this.#answerText, breakers: this.#breakers };
    const suppressed = Int32Array.from(new Set([...tokenizer.suppressed, traits.mask]));
    const made = makeSequence(request, layOut(request.prompt), { ...own, tokenizer, suppressed });
    const { options } = request;
    const room = ctxLen - made.prompt.length;
    const wanted = options.num_predict === -2 ? room : options.num_predict < 0 ? ANSWER_TOKENS : options.num_predict;
    const sequence: Sequence = { ...made, predictMax: Math.min(wanted, room) };
    const block = options.diffusion_block_length;
    const algorithm: DiffusionAlgorithm = options.diffusion_algorithm ?? (traits.blocks ? "confidence" : "entropy");
    const rng = makeRng(options.seed === -1 ? randomSeed() : options.seed);
    const denoising = new Denoising({
      prompt: sequence.prompt,
      length: sequence.predictMax,
      traits,
      passes: planPasses({
        length: sequence.predictMax,
        steps: options.diffusion_steps,
        block: block >= 0 ? block : traits.blocks ? BLOCK_TOKENS : 0,
      }),
      choose: (logits) => sequence.sampler.sample(logits),
      rank: rankBy(algorithm, () => rng.float()),
    });
    return { sequence, denoising, isPromptReported: false };
  }

  async #run(): Promise<void> {
    const { embedder, loop, slots } = this.#parts;
    while (!this.#closed) {
      this.#bell.hush();
      this.#running = this.#running.filter(({ sequence }) => !sequence.cancelled);
      this.#waiting = this.#waiting.filter(({ sequence }) => !sequence.cancelled);
      while (this.#running.length < slots && this.#waiting.length > 0) this.#running.push(this.#waiting.shift()!);
      const [next] = this.#running;
      if (!next && !embedder.ready) {
        await this.#bell.rung();
        continue;
      }
      if (next) await this.#turn(next);
      await embedder.step(Infinity);
      await loop.nextTurn(); // handles messages: a cancel takes effect before the next pass
    }
  }

  /** Runs one pass of an answer, which then waits for the others. */
  async #turn(answer: Answer): Promise<void> {
    const events: SequenceEvent[] = [];
    let goesOn = false;
    try {
      if (!answer.denoising.done) await this.#pass(answer);
      goesOn = this.#tell(answer, events);
    } catch (error) {
      events.push(failureOf(answer.sequence.id, error));
    }
    this.#running = [...this.#running.filter((each) => each !== answer), ...(goesOn ? [answer] : [])];
    if (events.length > 0 && !answer.sequence.cancelled) this.#parts.emit(events);
  }

  async #pass({ sequence, denoising }: Answer): Promise<void> {
    const { session, head, loop, dim, vocabSize } = this.#parts;
    const startedNs = loop.nowNs();
    const states = await session.states([{ slot: 0, start: 0, tokens: denoising.tokens, states: "all" }]);
    const { masks } = denoising;
    for (let at = 0; at < masks.length; at += HEAD_ROWS) {
      const positions = masks.slice(at, at + HEAD_ROWS);
      const input = new Float32Array(positions.length * dim);
      for (const [i, position] of positions.entries()) {
        const row = denoising.rowOf(position);
        input.set(states.subarray(row * dim, (row + 1) * dim), i * dim);
      }
      const rows = { slot: 0, start: 0, tokens: new Int32Array(positions.length), input, logits: "all" } as const;
      const logits = await head.run([rows]);
      for (const [i, position] of positions.entries())
        denoising.consider(position, logits.subarray(i * vocabSize, (i + 1) * vocabSize));
    }
    denoising.finishPass();
    if (sequence.firstTokenAtNs > 0) return;
    sequence.firstTokenAtNs = loop.nowNs();
    sequence.promptEvalNs = sequence.firstTokenAtNs - startedNs;
    sequence.cached = sequence.prompt.length;
  }

  /** Adds the events of a pass. Returns whether the answer continues. */
  #tell(answer: Answer, events: SequenceEvent[]): boolean {
    const { sequence, denoising } = answer;
    const { generated, prompt, predictMax } = sequence;
    const { tokenizer } = this.#parts;
    if (!answer.isPromptReported) {
      tellProgress(sequence, events);
      events.push(promptEvent(sequence));
      answer.isPromptReported = true;
    }
    while (generated.length < denoising.known) {
      const id = denoising.tokens[prompt.length + generated.length]!;
      sequence.sampler.accept(id);
      generated.push(id);
      if (tokenizer.endOfGeneration.has(id)) return this.#finish(sequence, "stop", events);
      const piece = sequence.text.push(id);
      say(sequence, piece, events);
      sequence.stopSequence = piece.stop;
      if (piece.stop !== undefined) return this.#finish(sequence, "stop", events);
    }
    return generated.length < predictMax || this.#finish(sequence, "length", events);
  }

  /** Returns false: the answer is over. */
  #finish(sequence: Sequence, reason: FinishReason, events: SequenceEvent[]): false {
    if (sequence.stopSequence === undefined) say(sequence, sequence.text.end(), events);
    const { loop, tokenizer } = this.#parts;
    events.push(doneEvent(sequence, { reason, nowNs: loop.nowNs(), tokenizer }));
    return false;
  }
}

/** Throws `bad_request` for settings that need tokens in their order. */
function checkRequest({ format, grammar, logprobs, promptLogprobs }: SequenceRequest): void {
  const measures = (logprobs ?? promptLogprobs) !== undefined && "logprobs";
  const wanted = format ? "a format or JSON schema" : grammar ? "a grammar" : measures;
  if (!wanted) return;
  const why = "it fills in its answer in any order, not one token after the other";
  throw new AppError("bad_request", `this diffusion model does not support ${wanted}: ${why}`);
}
