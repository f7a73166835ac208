/** Transcribes recordings window by window, each from the time at which the previous one ended. */
import { AppError } from "../../../base/index.ts";
import type { SpeechModel } from "../../program/speech.ts";
import type { Tokenizer } from "../../text/tokenizer/tokenizer.ts";
import { logMel, whisperMel } from "../mel.ts";
import { SAMPLE_RATE } from "../sound.ts";
import { piecesOf } from "./segments.ts";
import { isSilent, writeWindow, type WindowRequest } from "./window.ts";
import { whisperVocabulary, type WhisperVocabulary } from "./vocabulary.ts";

const WINDOW_SECONDS = 30;
/** A rest of the recording that is too short for a word. */
const REST_SECONDS = 0.1;
/**
 * A text above this temperature is unreliable: the next window does not continue it. (transcribe.py of openai/whisper)
 */
const GUESSED_FROM = 0.5;

export interface SpeechTask {
  /** As `en`; undefined: the model detects it. */
  readonly language?: string | undefined;
  /** `translate`: into English. */
  readonly task: "transcribe" | "translate";
  /** Names and style that the text should follow. */
  readonly prompt?: string | undefined;
  readonly temperature: number;
}

/** A sentence or a part of one. Times are seconds from the recording's beginning. */
export interface SpeechSegment {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** Ids, times included. */
  readonly tokens: readonly number[];
  /** The beginning of its window. */
  readonly from: number;
  readonly temperature: number;
  readonly logprob: number;
  readonly repetition: number;
  readonly silence: number;
}

export interface Transcriber {
  /** The languages' codes; empty: English only. */
  readonly languages: readonly string[];
  /**
   * Transcribes a recording of 16,000 samples per second. Throws `bad_request` for a language or a task that the model
   * does not know. `pause` is awaited after each token.
   * @returns the language's code
   */
  write(
    samples: Float32Array,
    task: SpeechTask,
    hooks: { readonly onSegment: (segment: SpeechSegment) => void; readonly pause: () => Promise<void> },
  ): Promise<string>;
}

/** Throws `bad_file` if the vocabulary is not Whisper's. */
export function makeTranscriber(model: SpeechModel, tokenizer: Tokenizer): Transcriber {
  const vocabulary = whisperVocabulary(tokenizer, model.vocabSize);
  const { end, start, languages, firstTime } = vocabulary;
  const textOf = (tokens: readonly number[]): string => tokenizer.detokenize(tokens.filter((id) => id < end));
  const promptOf = (text = ""): readonly number[] =>
    text.trim() === "" ? [] : lastOf([...encode(tokenizer, ` ${text.trim()}`)]);
  /** The last tokens of earlier text, which a window continues, as many as in the original. */
  const lastOf = (ids: readonly number[]): readonly number[] => {
    const count = Math.floor(model.ctxLen / 2) - 1;
    return count > 0 ? ids.slice(-count) : [];
  };
  return {
    languages: [...languages.keys()],
    async write(samples, task, { onSegment, pause }) {
      checkTask(task, vocabulary);
      let language = task.language;
      let prompt = promptOf(task.prompt);
      const seconds = samples.length / SAMPLE_RATE;
      for (let from = 0; from < seconds - REST_SECONDS || from === 0;) {
        await pause();
        const window = await model.hear(melOf(samples, from, model.bins));
        if (language === undefined) {
          language = languages.size === 0 ? "en" : likeliestLanguage(await window.extend([start]), languages);
        }
        const steering = steeringOf(language, task, vocabulary);
        const request: WindowRequest = { ...task, model, vocabulary, prompt, steering, textOf, pause };
        const written = await writeWindow(window, request);
        const length = Math.min(WINDOW_SECONDS, seconds - from);
        const { pieces, until } = piecesOf(written.tokens, length, { firstTime });
        const { temperature, logprob, repetition, silence } = written;
        for (const piece of isSilent(written) ? [] : pieces) {
          const text = textOf(piece.tokens);
          if (text.trim() === "" || piece.end <= piece.start) continue;
          const times = { start: from + piece.start, end: from + piece.end };
          onSegment({ ...piece, ...times, text, from, temperature, logprob, repetition, silence });
          prompt = lastOf([...prompt, ...piece.tokens]);
        }
        if (temperature > GUESSED_FROM) prompt = []; // an unreliable text would mislead the next window
        from += isSilent(written) ? length : until;
      }
      return language ?? "en";
    },
  };
}

const encode = (tokenizer: Tokenizer, text: string): Int32Array =>
  tokenizer.encode(text, { addSpecial: false, parseSpecial: false });

function checkTask({ language, task }: SpeechTask, { languages }: WhisperVocabulary): void {
  if (languages.size === 0) {
    if (language !== undefined && language !== "en")
      throw new AppError("bad_request", `language: expected 'en', got '${language}': the model knows English only`);
    if (task === "translate") throw new AppError("bad_request", "the model knows English only and cannot translate");
    return;
  }
  if (language === undefined || languages.has(language)) return;
  const known = [...languages.keys()].join(", ");
  throw new AppError("bad_request", `language: expected a code as in ISO 639-1, got '${language}'; known: ${known}`);
}

function steeringOf(language: string, { task }: SpeechTask, vocabulary: WhisperVocabulary): number[] {
  const id = vocabulary.languages.get(language);
  return id === undefined ? [] : [id, vocabulary[task]];
}

function likeliestLanguage(logits: Float32Array, languages: ReadonlyMap<string, number>): string {
  const ranked = [...languages].toSorted(([, a], [, b]) => logits[b]! - logits[a]!);
  return ranked[0]![0]; // a vocabulary with speech tasks has languages
}

function melOf(samples: Float32Array, from: number, bins: number): Float32Array {
  const window = new Float32Array(WINDOW_SECONDS * SAMPLE_RATE);
  const first = Math.round(from * SAMPLE_RATE);
  window.set(samples.subarray(first, first + window.length));
  return logMel(window, whisperMel(bins)).values;
}
