/** The tokens that steer Whisper: found by their texts. */
import { AppError } from "../../../base/index.ts";
import type { Tokenizer } from "../../text/tokenizer/tokenizer.ts";

/** Ids of control tokens. Timestamps are the ids from `firstTime` on, one for every 20 ms. */
export interface WhisperVocabulary {
  readonly start: number;
  readonly end: number;
  readonly previous: number;
  readonly noSpeech: number;
  readonly noTimes: number;
  readonly firstTime: number;
  readonly transcribe: number;
  readonly translate: number;
  /** By code, as `en`; empty: the model knows English only. */
  readonly languages: ReadonlyMap<string, number>;
}

/** Models with smaller vocabularies know English only. */
const MULTILINGUAL_FROM = 51_865;

/** Throws `bad_file` if a token is missing. */
export function whisperVocabulary(tokenizer: Tokenizer, vocabSize: number): WhisperVocabulary {
  const find = (text: string): number | undefined => {
    const ids = tokenizer.encode(text, { addSpecial: false, parseSpecial: true });
    return ids.length === 1 ? ids[0] : undefined;
  };
  const idOf = (...texts: readonly string[]): number => {
    const found = texts.map(find).find((id) => id !== undefined);
    if (found !== undefined) return found;
    throw new AppError("bad_file", `the model's vocabulary: expected a token '${texts[0]}', got none`);
  };
  const start = idOf("<|startoftranscript|>");
  const noTimes = idOf("<|notimestamps|>");
  const languages = new Map<string, number>();
  for (let id = start + 1; id < Math.min(vocabSize, tokenizer.vocabSize); id++) {
    const code = /^<\|([a-z]{2,3})\|>$/.exec(tokenizer.detokenize([id], { special: true }))?.[1];
    if (code === undefined) break;
    languages.set(code, id);
  }
  return {
    start,
    end: idOf("<|endoftext|>"),
    previous: idOf("<|startofprev|>"),
    noSpeech: idOf("<|nospeech|>", "<|nocaptions|>"),
    noTimes,
    firstTime: noTimes + 1,
    transcribe: idOf("<|transcribe|>"),
    translate: idOf("<|translate|>"),
    languages: vocabSize < MULTILINGUAL_FROM ? new Map() : languages,
  };
}
