/** Events of answers as a `text_completion`, or as the frames of its chunks. Thinking is omitted. */
import type { ChosenLogprob } from "../../runtime/portable.ts";
import type { Frame } from "../http/sse.ts";
import { choiceFrames, type Choices, type ChunkWriter } from "./choice-frames.ts";
import { collectAll, totalOf } from "./choices.ts";
import { usageOf, type Head } from "./reply.ts";
import type { Reports } from "./settings.ts";
import { progressOf, Timer, timingsOf } from "./timings.ts";

export interface CompletionReplyOptions {
  readonly head: Head;
  /** The prompts, if the texts begin with them; else undefined. */
  readonly echo: readonly string[] | undefined;
  /** Choices for each prompt. */
  readonly count: number;
  readonly includeUsage: boolean;
  readonly wantsLogprobs: boolean;
  readonly reports: Reports | undefined;
}

/** All events in one object. */
export async function textCompletion(choices: Choices, options: CompletionReplyOptions): Promise<object> {
  const { head, count, wantsLogprobs } = options;
  const answers = await collectAll(choices);
  const ends = answers.map(({ done }) => done);
  return {
    object: "text_completion",
    ...head,
    choices: answers.map(({ text, logprobs, done }, index) => {
      const echo = echoOf(index, options);
      return {
        text: echo + text,
        index,
        logprobs: wantsLogprobs ? legacyLogprobs(logprobs, echo.length) : null,
        finish_reason: done.reason,
      };
    }),
    usage: usageOf(totalOf(ends, count)),
    ...timingsOf(ends),
  };
}

const echoOf = (index: number, { echo, count }: CompletionReplyOptions): string =>
  echo?.[Math.floor(index / count)] ?? "";

/** A frame per text, one with the finish reason of each choice, one with the usage if requested, and the end mark. */
export const textChunks = (choices: Choices, options: CompletionReplyOptions): AsyncGenerator<Frame, void, void> =>
  choiceFrames(choices, {
    ...options,
    object: "text_completion",
    writer: (index) => choiceWriter(index, options),
  });

/** Writes its choice, timings, progress. */
function choiceWriter(index: number, options: CompletionReplyOptions): ChunkWriter {
  let at = 0; // characters of text so far
  let before = echoOf(index, options);
  const timer = options.reports?.timings ? new Timer() : undefined;
  return (event) => {
    timer?.take(event);
    const more = timer && { timings: timer.timings };
    const of = (choice: object): object => ({ choices: [{ text: "", index, logprobs: null, ...choice }], ...more });
    if (event.kind === "done") return of({ text: before, finish_reason: event.reason });
    if (event.kind === "progress") return { ...of({ finish_reason: null }), ...progressOf(event) };
    if (event.kind !== "text") return undefined;
    const text = before + event.text;
    const logprobs = options.wantsLogprobs ? legacyLogprobs(event.logprobs, at + before.length) : null;
    at += text.length;
    before = "";
    return of({ text, logprobs, finish_reason: null });
  };
}

/** @param start characters of text before the first token */
function legacyLogprobs(chosen: readonly ChosenLogprob[] = [], start: number): object {
  let at = start;
  return {
    tokens: chosen.map(({ token }) => token),
    token_logprobs: chosen.map(({ logprob }) => logprob),
    top_logprobs: chosen.map(({ top }) => Object.fromEntries(top.map(({ token, logprob }) => [token, logprob]))),
    text_offset: chosen.map(({ token }) => {
      const offset = at;
      at += token.length;
      return offset;
    }),
  };
}
