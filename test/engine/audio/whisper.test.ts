/** Whisper's rules for tokens, the cut of a window into pieces, and the walk over a recording. */
import { describe, expect, test } from "bun:test";
import { applyRules } from "../../../src/engine/audio/whisper/rules.ts";
import { piecesOf } from "../../../src/engine/audio/whisper/segments.ts";
import { makeTranscriber, type SpeechSegment } from "../../../src/engine/audio/whisper/transcriber.ts";
import type { SpeechModel } from "../../../src/engine/program/speech.ts";
import type { Tokenizer } from "../../../src/engine/text/tokenizer/tokenizer.ts";

/** Texts are the ids 0 … 9, as their digits; times begin at 20. */
const CONTROL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|de|>", "<|translate|>", "<|transcribe|>"];
const NAMES = [...CONTROL, "<|startofprev|>", "<|nospeech|>", "", "<|notimestamps|>"];
const [END, START, EN, DE, TRANSLATE, TRANSCRIBE, PREVIOUS, NO_SPEECH, , NO_TIMES] = NAMES.keys().map((i) => 10 + i);
const FIRST_TIME = 20;
const VOCAB = FIRST_TIME + 1501;
const at = (seconds: number): number => FIRST_TIME + Math.round(seconds * 50);

const vocabulary = {
  start: START!,
  end: END!,
  previous: PREVIOUS!,
  noSpeech: NO_SPEECH!,
  noTimes: NO_TIMES!,
  firstTime: FIRST_TIME,
  transcribe: TRANSCRIBE!,
  translate: TRANSLATE!,
  languages: new Map([["en", EN!]]),
};

describe("the rules of timestamps", () => {
  const allowed = (written: readonly number[]): number[] => {
    const logits = new Float32Array(VOCAB).fill(-50);
    for (let id = 0; id < FIRST_TIME; id++) logits[id] = 0; // likelier than all times together
    applyRules(logits, written, { vocabulary, suppressed: [7], suppressedFirst: [at(0)] });
    return [...logits.keys()].filter((id) => logits[id]! > -Infinity);
  };
  const texts = [0, 1, 2, 3, 4, 5, 6, 8, 9];
  const times = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

  test("allow only times of the first second at the beginning", () => {
    expect(allowed([])).toEqual(times(at(0.02), at(1)));
  });
  test("allow text and the end after a first time", () => expect(allowed([at(0)])).toEqual([...texts, END!]));
  test("allow text, the end and later times after a text", () => {
    expect(allowed([at(1), 5])).toEqual([...texts, END!, ...times(at(1.02), at(30))]);
  });
  test("allow the end and times from a text's end on after that end", () => {
    expect(allowed([at(1), 5, at(2)])).toEqual([END!, ...times(at(2), at(30))]);
  });
  test("allow text and the end after a pair of times", () => {
    expect(allowed([at(1), 5, at(2), at(2)])).toEqual([...texts, END!]);
  });
  test("allow only times if the times together are likelier than any text", () => {
    const logits = new Float32Array(VOCAB).fill(-5);
    logits[3] = 0;
    applyRules(logits, [at(0), 5], { vocabulary, suppressed: [], suppressedFirst: [] });
    expect(logits[3]).toBe(-Infinity);
    expect(logits[at(1)]).toBe(-5);
  });
});

describe("a window", () => {
  test("ends its segments at pairs of times, and is heard again from the last pair", () => {
    const tokens = [at(0), 1, 2, at(2), at(3), 4, at(5), at(5), 6];
    expect(piecesOf(tokens, 30, vocabulary)).toEqual({
      pieces: [
        { start: 0, end: 2, tokens: tokens.slice(0, 4) },
        { start: 3, end: 5, tokens: tokens.slice(4, 7) },
      ],
      until: 5,
    });
  });
  test("ends a segment at a last time too, and is then complete", () => {
    const tokens = [at(0), 1, at(2), at(2), 3, at(4)];
    const { pieces, until } = piecesOf(tokens, 12, vocabulary);
    expect(pieces.map(({ start, end }) => [start, end])).toEqual([
      [0, 2],
      [2, 4],
    ]);
    expect(until).toBe(12);
  });
  test("is one segment without pairs", () => {
    expect(piecesOf([at(1), 1], 9, vocabulary)).toEqual({
      pieces: [{ start: 1, end: 9, tokens: [at(1), 1] }],
      until: 9,
    });
    expect(piecesOf([at(1), 1, at(40)], 9, vocabulary).pieces[0]!.end).toBe(9); // no later than the sound
  });
});

/** A vocabulary as above. */
const tokenizer = {
  vocabSize: VOCAB,
  encode: (text: string) => {
    const id = NAMES.indexOf(text);
    return Int32Array.from(id >= 0 ? [10 + id] : [...text.trim()].map(Number));
  },
  detokenize: (ids: Iterable<number>) => [...ids].map((id) => (id < 10 ? String(id) : (NAMES[id - 10] ?? ""))).join(""),
} as unknown as Tokenizer; // the transcriber uses these

describe("the transcriber", () => {
  /** Plays a script with a list of answers per window; records its inputs. */
  function scripted(scripts: readonly (readonly number[])[], vocabSize = 60_000) {
    const given: number[][] = [];
    let window = -1;
    const model: SpeechModel = {
      bins: 80,
      vocabSize,
      ctxLen: 448,
      suppressed: [],
      suppressedFirst: [],
      hear: async (mel) => {
        expect(mel.length).toBe(80 * 3000);
        const script = scripts[++window]!;
        let text: number[] = [];
        return {
          restart: () => void (text = []),
          extend: async (tokens) => {
            text.push(...tokens);
            given[window] = text;
            const logits = new Float32Array(VOCAB).fill(-20);
            const beginning = text.findLastIndex((id) => id >= EN! && id <= TRANSCRIBE!);
            logits[script[text.length - beginning - 1] ?? END!] = 20;
            if (text.at(-1) === START!) logits[DE!] = 30;
            return logits;
          },
        };
      },
    };
    return { model, given };
  }
  const write = async (
    { model }: ReturnType<typeof scripted>,
    seconds: number,
    task: { language?: string; task?: "transcribe" | "translate"; prompt?: string; temperature?: number } = {},
  ): Promise<{ language: string; segments: SpeechSegment[] }> => {
    const segments: SpeechSegment[] = [];
    const language = await makeTranscriber(model, tokenizer).write(
      new Float32Array(seconds * 16_000).map((_, i) => Math.sin(i)),
      { task: "transcribe", temperature: 0, ...task },
      { onSegment: (segment) => segments.push(segment), pause: async () => {} },
    );
    return { language, segments };
  };

  test("continues a recording at the end of the last complete segment, in the language detected first", async () => {
    const speech = scripted([
      [at(0), 1, at(10), at(10), 2, at(20), at(20), 3],
      [at(0), 4, at(25)],
    ]);
    const { language, segments } = await write(speech, 45);
    expect(language).toBe("de");
    expect(segments.map(({ start, end, text, from }) => [start, end, text, from])).toEqual([
      [0, 10, "1", 0],
      [10, 20, "2", 0],
      [20, 45, "4", 20],
    ]);
    const before = [at(0), 1, at(10), at(10), 2, at(20)]; // the complete pieces of the window before
    expect(speech.given[0]!.slice(0, 3)).toEqual([START!, DE!, TRANSCRIBE!]);
    expect(speech.given[1]!.slice(0, 10)).toEqual([PREVIOUS!, ...before, START!, DE!, TRANSCRIBE!]);
  });

  test("drops a previous window that was sampled, and half of a prompt that does not fit", async () => {
    const script = [at(0), 1, at(30)];
    const guessed = scripted([script, script]);
    await write(guessed, 40, { language: "de", temperature: 0.6, prompt: "9" });
    expect(guessed.given.map(([first]) => first)).toEqual([PREVIOUS!, START!]);
    const long = scripted([
      [at(0), ...Array.from({ length: 200 }, (_, i) => Math.floor(Math.abs(Math.sin(i + 1)) * 1e6) % 7), at(30)],
      script,
    ]);
    await write(long, 40, { language: "de", prompt: "9".repeat(100) });
    expect(long.given[1]!.indexOf(START!)).toBe(224); // 223 tokens and the mark before them
  });

  test("writes language, prompt and task into the decoder's prompt", async () => {
    const speech = scripted([[at(0), 1, at(2)]]);
    await write(speech, 3, { language: "en", task: "translate", prompt: "987" });
    expect(speech.given[0]!.slice(0, 8)).toEqual([PREVIOUS!, 9, 8, 7, START!, EN!, TRANSLATE!, at(0)]);
  });

  test("refuses a language that the model does not know", async () => {
    const speech = scripted([]);
    await expect(write(speech, 3, { language: "xx" })).rejects.toThrow("got 'xx'; known: en, de");
    const english = scripted([], VOCAB);
    await expect(write(english, 3, { language: "de" })).rejects.toThrow("the model knows English only");
    await expect(write(english, 3, { task: "translate" })).rejects.toThrow("cannot translate");
  });
});
