/** Events of an answer as a `text_completion`, or as the frames of its chunks. Thinking is omitted. */
import type { ChosenLogprob } from "../../runtime/portable.ts";
import { collect, type AnswerEvent } from "../answers/answer.ts";
import type { Frame } from "../http/sse.ts";
import { usageOf, type Head } from "./reply.ts";

export interface CompletionReplyOptions {
  readonly head: Head;
  /** The prompt, if the text begins with it; else "". */
  readonly echo: string;
  readonly includeUsage: boolean;
  readonly wantsLogprobs: boolean;
}

/** All events in one object. */
export async function textCompletion(
  events: AsyncIterable<AnswerEvent>,
  { head, echo, wantsLogprobs }: CompletionReplyOptions,
): Promise<object> {
  const { text, logprobs, done } = await collect(events);
  const choice = {
    text: echo + text,
    index: 0,
    logprobs: wantsLogprobs ? legacyLogprobs(logprobs, echo.length) : null,
    finish_reason: done.reason,
  };
  return { object: "text_completion", ...head, choices: [choice], usage: usageOf(done) };
}

/** A frame per text, one with the finish reason, one with the usage if requested, and the end mark. */
export async function* textChunks(
  events: AsyncIterable<AnswerEvent>,
  { head, echo, includeUsage, wantsLogprobs }: CompletionReplyOptions,
): AsyncGenerator<Frame, void, void> {
  const chunk = (rest: object): Frame => ({ data: { object: "text_completion", ...head, ...rest } });
  const choice = (text: string, rest: object = {}): object => ({
    text,
    index: 0,
    logprobs: null,
    finish_reason: null,
    ...rest,
  });
  let at = 0; // characters of text so far
  let before = echo;
  for await (const event of events) {
    if (event.kind === "text") {
      const text = before + event.text;
      const logprobs = wantsLogprobs ? { logprobs: legacyLogprobs(event.logprobs, at + before.length) } : {};
      at += text.length;
      before = "";
      yield chunk({ choices: [choice(text, logprobs)] });
    } else if (event.kind === "done") {
      yield chunk({ choices: [choice(before, { finish_reason: event.reason })] });
      if (includeUsage) yield chunk({ choices: [], usage: usageOf(event) });
    }
  }
  yield { data: "[DONE]" };
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
