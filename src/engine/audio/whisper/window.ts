/** Transcribes one window of 30 seconds. */
import { makeRng } from "../../text/rng.ts";
import type { HeardWindow, SpeechModel } from "../../program/speech.ts";
import { applyRules, logSum } from "./rules.ts";
import type { WhisperVocabulary } from "./vocabulary.ts";

/** Bounds of a good text, as in Whisper's own program; a worse text is generated again at a higher temperature. */
const [REPETITION_MAX, LOGPROB_MIN, SILENCE_MIN] = [2.4, -1, 0.6];
const TEMPERATURE_STEP = 0.2;

/** A window's text. */
export interface WindowText {
  /** Text and times. */
  readonly tokens: readonly number[];
  readonly temperature: number;
  /** The mean logarithm of the tokens' probabilities. */
  readonly logprob: number;
  /** Bytes of the text per byte of its compressed form. */
  readonly repetition: number;
  /** The probability that the window has no speech. */
  readonly silence: number;
}

export interface WindowRequest {
  readonly model: Pick<SpeechModel, "suppressed" | "suppressedFirst" | "ctxLen">;
  readonly vocabulary: WhisperVocabulary;
  /** Tokens of earlier text, which the window's text continues in style. */
  readonly prompt: readonly number[];
  /** Language and task. */
  readonly steering: readonly number[];
  /** 0: the likeliest tokens; sampling is used only if these are bad. */
  readonly temperature: number;
  readonly textOf: (tokens: readonly number[]) => string;
  /** Awaited after each token; throws to end the transcription. */
  readonly pause: () => Promise<void>;
}

/** The first good text, or the last one if no text is good. */
export async function writeWindow(window: HeardWindow, request: WindowRequest): Promise<WindowText> {
  for (let temperature = request.temperature; ; temperature += TEMPERATURE_STEP) {
    const found = await writeOnce(window, request, temperature);
    const isGood = found.repetition <= REPETITION_MAX && found.logprob >= LOGPROB_MIN;
    const isLast = request.temperature > 0 || temperature + TEMPERATURE_STEP > 1.01;
    if (isGood || isSilent(found) || isLast) return found;
  }
}

/** The window has no speech, and its text is unreliable. */
export const isSilent = ({ silence, logprob }: WindowText): boolean => silence > SILENCE_MIN && logprob < LOGPROB_MIN;

async function writeOnce(window: HeardWindow, request: WindowRequest, temperature: number): Promise<WindowText> {
  const { model, vocabulary, prompt, steering, textOf, pause } = request;
  const { start, end, noSpeech, previous } = vocabulary;
  const rng = makeRng(1);
  const tokens: number[] = [];
  const before = prompt.length > 0 ? [previous, ...prompt, start] : [start];
  const limit = Math.min(Math.floor(model.ctxLen / 2), model.ctxLen - before.length - steering.length);
  window.restart();
  const first = await window.extend(before);
  const silence = Math.exp(first[noSpeech]! - logSum(first));
  let logits = steering.length > 0 ? await window.extend(steering) : first;
  let sum = 0;
  for (;;) {
    await pause();
    applyRules(logits, tokens, { vocabulary, ...model });
    const token = temperature === 0 ? likeliest(logits) : sampled(logits, temperature, rng.float());
    sum += logits[token]! - logSum(logits);
    if (token === end) break;
    tokens.push(token);
    if (tokens.length >= limit) break;
    logits = await window.extend([token]);
  }
  const logprob = sum / (tokens.length + 1);
  return { tokens, temperature, logprob, silence, repetition: await repetitionOf(textOf(tokens)) };
}

function likeliest(logits: Float32Array): number {
  let best = 0;
  for (let id = 1; id < logits.length; id++) if (logits[id]! > logits[best]!) best = id;
  return best;
}

/** @param draw 0 … 1 */
function sampled(logits: Float32Array, temperature: number, draw: number): number {
  const scaled = logits.map((value) => value / temperature);
  const total = logSum(scaled);
  let rest = draw;
  for (let id = 0; id < scaled.length; id++) if ((rest -= Math.exp(scaled[id]! - total)) < 0) return id;
  return likeliest(logits);
}

async function repetitionOf(text: string): Promise<number> {
  const bytes = new TextEncoder().encode(text);
  const packed = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
  return bytes.length / (await new Response(packed).arrayBuffer()).byteLength;
}
