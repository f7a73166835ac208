/**
 * Fits a turn into the model's context: it compacts the oldest exchanges first, then shows fewer events; the others
 * wait for the next turn. It never cuts the prompt: one that is too long is refused. Results of tools are cut later to
 * the remaining room.
 */
import { AppError } from "../../base/index.ts";
import { displayName, parseReference } from "../../library/portable.ts";
import type { ChatRequest, ChatRuntime, Message } from "../../runtime/portable.ts";
import { compactionOf, exchangesOf, summaryQuestion, withNote, type Compaction, type Exchange } from "./compaction.ts";
import { renderEvents } from "./event-lines.ts";
import type { WaitingEvent } from "./events.ts";
import type { History } from "./sessions.ts";
import { RESULT_CHARS_MAX } from "./tools/index.ts";

export const EVENTS_SHOWN_MAX = 50;
const EVENT_CHARS_MAX = 4000;
/** Fitting cuts an event to no less than this. */
const EVENT_CHARS_MIN = 200;
/** Tokens of the context that are reserved for the answer. */
const ANSWER_TOKENS_MIN = 64;
/** Compaction shrinks the history to this share of the budget, so that the next turn need not compact it. */
const COMPACT_TO = 0.6;
const SUMMARY_TOKENS_MAX = 256;
/** Shorter conversations (UTF-16 units) are not summarised. */
const SUMMARISED_CHARS_MIN = 100;
/** Lengths of a tool's result in UTF-16 units, tried in turn until a round fits. */
const RESULT_CHARS = [1, 2, 4, 8, 16, 32].map((part) => RESULT_CHARS_MAX / part);

export interface TurnInput {
  /** Model, tools, thinking and signal of the turn. */
  readonly chat: Omit<ChatRequest, "messages">;
  /** Undefined: the model's own. */
  readonly system: string | undefined;
  readonly history: History;
  /** The oldest waiting events. */
  readonly events: readonly WaitingEvent[];
  readonly waiting: number;
  readonly prompt: string;
  /** Share of the context that the prompt may fill before history is compacted. */
  readonly compactAt: number;
}

export interface FittedTurn {
  readonly messages: readonly Message[];
  /** The user's message, events and prompt, as the transcript keeps it. */
  readonly content: string;
  readonly shown: readonly WaitingEvent[];
  /** The compaction to record in the transcript; undefined: none. */
  readonly compaction: Compaction | undefined;
}

/** The history and events that a turn might show. */
interface Choice {
  readonly dropped: number;
  readonly eventsMax: number;
  readonly charsMax: number;
  readonly summary?: string | undefined;
}

const WHOLE: Choice = { dropped: 0, eventsMax: EVENTS_SHOWN_MAX, charsMax: EVENT_CHARS_MAX };

/** Loads the model. Throws `too_large` where prompt and events alone do not fit. */
export async function fitTurn(runtime: ChatRuntime, input: TurnInput): Promise<FittedTurn> {
  const exchanges = exchangesOf(input.history.messages);
  const build = (choice: Choice): FittedTurn => buildTurn(input, exchanges, choice);
  const count = (turn: FittedTurn): Promise<number> =>
    runtime.countTokens({ ...input.chat, messages: turn.messages, truncate: false });
  const whole = build(WHOLE);
  const used = await count(whole);
  const ctxLen = ctxLenOf(runtime, input.chat.model);
  // a model that was unloaded meanwhile checks the length itself
  if (ctxLen === undefined) return whole;
  const budget = Math.floor(ctxLen * input.compactAt);
  if (used <= budget) return whole;
  const fits = async (choice: Choice, limit: number): Promise<boolean> => (await count(build(choice))) <= limit;
  const chars = JSON.stringify([whole.messages, input.chat.tools]).length;
  const kept = await dropExchanges(exchanges, { fits, budget, perToken: chars / used, chars });
  const choice = await shrinkEvents(kept, { fits, budget, input });
  const fitted = build(choice);
  const tokens = await count(fitted);
  if (tokens > ctxLen - ANSWER_TOKENS_MIN) {
    const message = `the prompt has ${tokens} tokens, and the context of '${input.chat.model}' ${ctxLen}`;
    throw new AppError("too_large", `${message}: expected ${ANSWER_TOKENS_MIN} left for the answer`);
  }
  if (choice.dropped === 0) return fitted;
  const dropped = exchanges.slice(0, choice.dropped);
  const summary = (await summarise(runtime, input, { dropped, ctxLen })) ?? input.history.compaction?.summary;
  const summarised = { ...choice, summary };
  return summary !== undefined && (await fits(summarised, budget)) ? build(summarised) : fitted;
}

function buildTurn(input: TurnInput, exchanges: readonly Exchange[], choice: Choice): FittedTurn {
  const { events, waiting, history, system, prompt } = input;
  const { text, shown } = renderEvents(events, { ...choice, waiting });
  const content = text === "" ? prompt : `${text}\n\n${prompt}`;
  const dropped = exchanges.slice(0, choice.dropped);
  const compaction = dropped.length > 0 ? compactionOf(history, dropped, choice.summary) : undefined;
  const kept = exchanges.slice(choice.dropped).flatMap((exchange) => exchange.map(({ message }) => message));
  const talk = withNote([...kept, { role: "user", content }], compaction ?? history.compaction);
  return {
    messages: system === undefined ? talk : [{ role: "system", content: system }, ...talk],
    content,
    shown,
    compaction,
  };
}

interface Limits {
  readonly fits: (choice: Choice, limit: number) => Promise<boolean>;
  readonly budget: number;
}

/**
 * Drops the oldest exchanges. The number is estimated from the characters per token of the whole conversation, so that
 * one count of the rest usually confirms it; otherwise half of the remaining exchanges are dropped, until none is left.
 */
async function dropExchanges(
  exchanges: readonly Exchange[],
  { fits, budget, chars, perToken }: Limits & { readonly chars: number; readonly perToken: number },
): Promise<Choice> {
  let dropped = 0;
  for (let left = chars; dropped < exchanges.length && left > budget * COMPACT_TO * perToken; dropped++)
    left -= JSON.stringify(exchanges[dropped]!.map(({ message }) => message)).length;
  while (dropped < exchanges.length && !(await fits({ ...WHOLE, dropped }, budget)))
    dropped += Math.ceil((exchanges.length - dropped) / 2);
  return { ...WHOLE, dropped };
}

/** Halves the number of events, then their length, until they fit. */
async function shrinkEvents(choice: Choice, { fits, budget, input }: Limits & { input: TurnInput }): Promise<Choice> {
  if (input.events.length === 0) return choice;
  let smaller = { ...choice, eventsMax: Math.min(choice.eventsMax, input.events.length) };
  while (!(await fits(smaller, budget))) {
    if (smaller.eventsMax > 1) smaller = { ...smaller, eventsMax: smaller.eventsMax >> 1 };
    else if (smaller.charsMax > EVENT_CHARS_MIN) smaller = { ...smaller, charsMax: smaller.charsMax >> 1 };
    else return smaller;
  }
  return smaller;
}

/** Undefined if the model wrote no summary. A stopped turn fails later, in its own request. */
async function summarise(
  runtime: ChatRuntime,
  { chat, history }: TurnInput,
  { dropped, ctxLen }: { dropped: readonly Exchange[]; ctxLen: number },
): Promise<string | undefined> {
  const { tools: _, ...plainChat } = chat;
  const limit = Math.min(SUMMARY_TOKENS_MAX, ctxLen >> 3);
  try {
    let text = "";
    const request = {
      ...plainChat,
      think: false,
      options: { ...chat.options, num_predict: limit },
      truncate: false,
      shift: false,
    };
    const room = ctxLen - limit;
    const messages = await fittingQuestion((charsMax) => summaryQuestion(history, { dropped, charsMax }), {
      fits: async (messages) => (await runtime.countTokens({ ...request, messages })) <= room,
      ctxLen,
    });
    if (!messages) return undefined;
    for await (const event of runtime.chat({ ...request, messages })) if (event.kind === "text") text += event.text;
    return text.trim() === "" ? undefined : text.trim();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return undefined;
  }
}

/** The longest tail of a conversation that fits: the runner's own cut would drop the question at its start. */
async function fittingQuestion(
  question: (charsMax: number) => readonly Message[],
  { fits, ctxLen }: { fits: (messages: readonly Message[]) => Promise<boolean>; ctxLen: number },
): Promise<readonly Message[] | undefined> {
  // about three units of text are a token, but a character of some scripts is several
  for (let charsMax = Math.floor(ctxLen * 1.5); charsMax >= SUMMARISED_CHARS_MIN; charsMax >>= 1) {
    const messages = question(charsMax);
    if (await fits(messages)) return messages;
  }
  return undefined;
}

/** Makes a tool's message that shows `charsMax` UTF-16 units of its result. */
export type ToolMessage = (charsMax: number) => Message;

/** One round of a turn: the model's calls and their results, cut to fit the context; undefined if there is no room. */
export async function fitRound(
  runtime: ChatRuntime,
  chat: TurnInput["chat"],
  { before, calling, results }: { before: readonly Message[]; calling: Message; results: readonly ToolMessage[] },
): Promise<readonly Message[] | undefined> {
  const ctxLen = ctxLenOf(runtime, chat.model);
  for (const charsMax of RESULT_CHARS) {
    const round = [calling, ...results.map((message) => message(charsMax))];
    if (ctxLen === undefined) return round;
    const tokens = await runtime.countTokens({ ...chat, messages: [...before, ...round], truncate: false });
    const left = charsMax === RESULT_CHARS.at(-1) ? ANSWER_TOKENS_MIN : Math.max(ANSWER_TOKENS_MIN, ctxLen >> 3);
    if (tokens <= ctxLen - left) return round;
  }
  return undefined;
}

/** The context that the model was loaded with. */
function ctxLenOf(runtime: ChatRuntime, model: string): number | undefined {
  const name = displayName(parseReference(model)).toLowerCase();
  return runtime.loaded().find((loaded) => loaded.name.toLowerCase() === name)?.ctxLen;
}
