/** A model's answer to a chat, wherever the model runs; and the requests to the server. */
import type { Api } from "../base/api.ts";
import type { Words } from "../words/index.ts";
import type { AnswerStats, ToolCall, WireMessage } from "./tree.ts";

export interface Question {
  readonly model: string;
  readonly messages: readonly WireMessage[];
  readonly options: Readonly<Record<string, number>>;
  readonly think?: boolean;
  readonly tools?: readonly object[];
}

export type AnswerEvent =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "thinking"; readonly text: string }
  | { readonly kind: "call"; readonly call: ToolCall }
  /** No text yet; `text` is the reason. */
  | { readonly kind: "wait"; readonly text: string; readonly fraction?: number }
  | { readonly kind: "done"; readonly reason: string; readonly stats?: AnswerStats };

/** Ends with `done`, or throws. */
export type Answerer = (question: Question, signal: AbortSignal) => AsyncGenerator<AnswerEvent, void, void>;

interface ChatLine {
  readonly message?: {
    readonly content?: string;
    readonly thinking?: string;
    readonly tool_calls?: readonly { id?: string; function: { name: string; arguments: unknown } }[];
  };
  readonly done: boolean;
  readonly done_reason?: string;
  readonly truncated?: boolean;
  readonly prompt_eval_count?: number;
  readonly prompt_eval_duration?: number;
  readonly eval_count?: number;
  readonly eval_duration?: number;
  readonly load_duration?: number;
}

export const serverAnswerer = (api: Api): Answerer =>
  async function* (question, signal) {
    const { tools, think, ...rest } = question;
    const body = {
      ...rest,
      stream: true,
      ...(think === undefined ? {} : { think }),
      ...(tools && tools.length > 0 ? { tools } : {}),
    };
    for await (const line of api.lines<ChatLine>("/api/chat", { body, signal })) yield* eventsOf(line);
  };

/** Interval of polling the progress of a load. */
const LOOK_MS = 700;

/** Reports the server's progress in loading a model, until the returned function is called. */
export function watchLoad(api: Api, words: () => Words, take: (event: AnswerEvent) => void): () => void {
  const timer = setInterval(() => {
    void api.json<{ loading?: readonly { fraction: number }[] }>("/api/system").then(
      ({ loading = [] }) => {
        const [first] = loading;
        if (first) take({ kind: "wait", text: words().engine.loading, fraction: first.fraction });
      },
      () => {}, // the answer itself reports errors
    );
  }, LOOK_MS);
  return () => clearInterval(timer);
}

function* eventsOf(line: ChatLine): Generator<AnswerEvent, void, void> {
  const { content, thinking, tool_calls = [] } = line.message ?? {};
  if (thinking) yield { kind: "thinking", text: thinking };
  if (content) yield { kind: "text", text: content };
  for (const { id, function: call } of tool_calls) {
    yield { kind: "call", call: { ...(id === undefined ? {} : { id }), name: call.name, arguments: call.arguments } };
  }
  if (line.done) yield { kind: "done", reason: line.done_reason ?? "stop", stats: statsOf(line) };
}

const msOf = (ns: number | undefined): number => (ns ?? 0) / 1e6;

const statsOf = (line: ChatLine): AnswerStats => ({
  promptTokens: line.prompt_eval_count ?? 0,
  promptMs: msOf(line.prompt_eval_duration),
  tokens: line.eval_count ?? 0,
  ms: msOf(line.eval_duration),
  loadMs: msOf(line.load_duration),
  wasCut: line.truncated === true,
});

/** Tokens per second; undefined if the figures are meaningless. */
export const rateOf = ({ tokens, ms }: { tokens: number; ms: number }): number | undefined =>
  tokens > 1 && ms > 0 ? (tokens * 1000) / ms : undefined;
