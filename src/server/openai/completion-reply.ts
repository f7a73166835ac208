/** Events of answers as a `text_completion`, or as the frames of its chunks. Thinking is omitted. */
import type { ChosenLogprob, PromptLogprob } from "../../runtime/portable.ts";
import type { Frame } from "../http/sse.ts";
import { choiceFrames, type Choices, type ChunkWriter } from "./choice-frames.ts";
import { collectAll, totalOf } from "./choices.ts";
import { legacyLogprobs, lengthOf, promptLogprobsField } from "./legacy-logprobs.ts";
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
  /** Number of alternatives for every token; undefined: no log-probabilities. */
  readonly logprobs: number | undefined;
  /** The same for the field `prompt_logprobs`. */
  readonly promptLogprobs: number | undefined;
  readonly reports: Reports | undefined;
}

/** All events in one object. */
export async function textCompletion(choices: Choices, options: CompletionReplyOptions): Promise<object> {
  const { head, count, logprobs: alternatives, promptLogprobs } = options;
  const answers = await collectAll(choices);
  const ends = answers.map(({ done }) => done);
  return {
    object: "text_completion",
    ...head,
    choices: answers.map(({ text, logprobs, done }, index) => {
      const echo = echoOf(index, options);
      const { prompt } = answers[index - (index % count)]!; // the first choice of a prompt describes it
      return {
        text: echo + text,
        index,
        logprobs: legacyLogprobs(options.echo ? prompt : [], logprobs, {
          echo,
          start: lengthOf(echo),
          count: alternatives,
        }),
        finish_reason: done.reason,
        ...(promptLogprobs === undefined ? {} : { prompt_logprobs: promptLogprobsField(prompt, promptLogprobs) }),
      };
    }),
    usage: usageOf(totalOf(ends, count)),
    ...timingsOf(ends),
  };
}

const echoOf = (index: number, { echo, count }: CompletionReplyOptions): string =>
  echo?.[Math.floor(index / count)] ?? "";

/** A frame per text, one with the finish reason of each choice, one with the usage if requested, and the end mark. */
export function textChunks(choices: Choices, options: CompletionReplyOptions): AsyncGenerator<Frame, void, void> {
  /** The tokens of each prompt so far: all of them come before the text of its choices. */
  const prompts: PromptLogprob[][] = [];
  const promptOf = (index: number): PromptLogprob[] => (prompts[Math.floor(index / options.count)] ??= []);
  return choiceFrames(choices, {
    ...options,
    object: "text_completion",
    writer: (index) => choiceWriter(index, promptOf(index), options),
  });
}

/** Writes its choice, timings, progress. @param prompt the tokens of its prompt, to which it adds */
function choiceWriter(index: number, prompt: PromptLogprob[], options: CompletionReplyOptions): ChunkWriter {
  let at = 0; // characters of text so far
  let isFirst = true;
  const timer = options.reports?.timings ? new Timer() : undefined;
  /** The fields of a piece of the answer; the first one begins with the prompt. */
  const piece = (said: string, logprobs: readonly ChosenLogprob[] = []): object => {
    const echo = isFirst ? echoOf(index, options) : "";
    const start = at + lengthOf(echo);
    const told = isFirst ? prompt : [];
    at = start + lengthOf(said);
    isFirst = false;
    return { text: echo + said, logprobs: legacyLogprobs(told, logprobs, { echo, start, count: options.logprobs }) };
  };
  return (event) => {
    timer?.take(event);
    const more = timer && { timings: timer.timings };
    const of = (choice: object): object => ({ choices: [{ text: "", index, logprobs: null, ...choice }], ...more });
    switch (event.kind) {
      case "promptLogprobs":
        for (const each of event.tokens) prompt.push(each);
        return undefined;
      case "progress":
        return { ...of({ finish_reason: null }), ...progressOf(event) };
      case "text":
        return of({ ...piece(event.text, event.logprobs), finish_reason: null });
      case "done":
        return of({ ...(isFirst ? piece("") : {}), finish_reason: event.reason });
      default:
        return undefined;
    }
  };
}
