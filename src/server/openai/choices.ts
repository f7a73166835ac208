/**
 * Several choices for a prompt, and several prompts. The first choice evaluates the prompt; the others begin
 * afterwards, so that they find it in the cache.
 */
import { AppError } from "../../base/index.ts";
import type { Options } from "../../engine/index.ts";
import { collect, type Answer, type AnswerEvent, type DoneEvent, type ReportEvent } from "../answers/answer.ts";

const CHOICES_MAX = 16;
/** Answers of one request: choices of all its prompts. */
const ANSWERS_MAX = 64;

/** One answer of several. */
export interface ChoiceStart {
  readonly prompt: number;
  /** Among the choices of its prompt. */
  readonly choice: number;
  /** Called when its prompt is read. */
  readonly onPrompt: () => void;
  /** Aborted when the client goes away, or another choice fails. */
  readonly signal: AbortSignal;
}

interface Wanted {
  readonly prompts: number;
  /** Choices for each prompt. */
  readonly count: number;
  readonly signal: AbortSignal;
}

/** The number of choices. Throws `bad_request`. */
export function readCount(n: number | undefined, { prompts, bestOf }: { prompts: number; bestOf?: number }): number {
  const count = n ?? 1;
  if (count < 1 || count > CHOICES_MAX) throw wrong("n", `1 to ${CHOICES_MAX} choices`, `${count}`);
  if (bestOf !== undefined && bestOf !== count) {
    throw wrong("best_of", `the same number as n: all choices are returned`, `${bestOf}`);
  }
  if (prompts * count > ANSWERS_MAX) {
    const got = `${prompts} prompts with ${count} choices each`;
    throw wrong("prompt", `at most ${ANSWERS_MAX} answers to a request`, got);
  }
  return count;
}

/** The answers, prompt by prompt. Nothing runs before they are read. */
export function choicesOf<E>(
  { prompts, count, signal }: Wanted,
  begin: (start: ChoiceStart) => AsyncGenerator<E, void, void>,
): AsyncGenerator<E, void, void>[] {
  if (prompts * count === 1) return [begin({ prompt: 0, choice: 0, onPrompt: () => undefined, signal })];
  const ending = new AbortController();
  const shared = AbortSignal.any([signal, ending.signal]);
  return Array.from({ length: prompts }, (_, prompt) => {
    const read = Promise.withResolvers<void>();
    const start = { prompt, onPrompt: read.resolve, signal: shared };
    return Array.from({ length: count }, (__, choice) =>
      ended(choice === 0 ? begin({ ...start, choice }) : after(read.promise, () => begin({ ...start, choice })), {
        ending,
        read: read.resolve,
      }),
    );
  }).flat();
}

/** Ends the other answers if this one fails or is no longer read, and lets them begin once it is over. */
async function* ended<E>(
  events: AsyncGenerator<E, void, void>,
  { ending, read }: { readonly ending: AbortController; readonly read: () => void },
): AsyncGenerator<E, void, void> {
  let isWhole = false;
  try {
    yield* events;
    isWhole = true;
  } finally {
    if (!isWhole) ending.abort();
    read();
  }
}

async function* after<E>(
  ready: Promise<void>,
  begin: () => AsyncGenerator<E, void, void>,
): AsyncGenerator<E, void, void> {
  await ready;
  yield* begin();
}

/** The options of a choice: a given seed counts up, so that choices differ and each can be had again alone. */
export const seeded = (options: Options, choice: number): Options =>
  choice === 0 || options.seed === undefined || options.seed < 0
    ? options
    : { ...options, seed: options.seed + choice };

/** All answers, whole. Throws the error of the one that fails first. */
export async function collectAll(
  choices: readonly AsyncIterable<AnswerEvent | ReportEvent>[],
): Promise<readonly Answer[]> {
  return Promise.all(choices.map(collect));
}

/** Events of all answers in order of arrival. Throws the error of the first one that fails. */
export async function* merged<E>(
  choices: readonly AsyncGenerator<E, void, void>[],
): AsyncGenerator<{ readonly index: number; readonly event: E }, void, void> {
  const next = async (index: number) => ({ index, result: await choices[index]!.next() }); // an index of the list
  const waiting = new Map(choices.map((_, index) => [index, next(index)]));
  try {
    while (waiting.size > 0) {
      const { index, result } = await Promise.race(waiting.values());
      if (result.done) waiting.delete(index);
      else {
        yield { index, event: result.value };
        waiting.set(index, next(index));
      }
    }
  } finally {
    for (const choice of choices) void choice.return().catch(() => undefined); // its failure is thrown already
    for (const each of waiting.values()) void each.catch(() => undefined);
  }
}

/** One end for the usage of all: each prompt counts once. @param count choices for each prompt */
export function totalOf(ends: readonly DoneEvent[], count: number): DoneEvent {
  const [first] = ends;
  if (ends.length === 1 && first) return first;
  const sum = (of: readonly DoneEvent[], name: "promptEvalCount" | "promptCachedCount" | "evalCount"): number =>
    of.reduce((total, { statistics }) => total + (statistics?.[name] ?? 0), 0);
  const prompts = ends.filter((_, i) => i % count === 0);
  const empty = { totalNs: 0, loadNs: 0, promptEvalNs: 0, evalNs: 0 };
  const statistics = {
    ...empty,
    promptEvalCount: sum(prompts, "promptEvalCount"),
    promptCachedCount: sum(prompts, "promptCachedCount"),
    evalCount: sum(ends, "evalCount"),
  };
  return {
    kind: "done",
    reason: "stop",
    statistics,
    ...(ends.some(({ truncated }) => truncated) ? { truncated: true } : {}),
  };
}

const wrong = (name: string, expected: string, got: string): AppError =>
  new AppError("bad_request", `${name}: expected ${expected}, got ${got}`);
