/**
 * A runtime that answers by script: each chat gets the next answer. Tokens are words, so that contexts of a few dozen
 * tokens can be filled; a prompt that does not fit is refused like the real one does.
 */
import { AppError } from "../../../src/base/errors.ts";
import type { ChatRequest, InferenceEvent, Runtime, ToolCall } from "../../../src/runtime/requests/runtime.ts";

export interface ScriptedAnswer {
  readonly text?: string;
  readonly thinking?: string;
  readonly calls?: readonly ToolCall[];
  readonly reason?: "stop" | "length";
  readonly error?: unknown;
  /** Pauses the answer after its first half until this resolves or the request is aborted. */
  readonly until?: Promise<unknown>;
}

export type Script = (request: ChatRequest, index: number) => ScriptedAnswer;

export interface ScriptedRuntime extends Pick<Runtime, "chat" | "countTokens" | "loaded"> {
  readonly requests: ChatRequest[];
  /** Conversations whose tokens were counted. */
  readonly counted: ChatRequest[];
  /** Chats whose signal was aborted while they ran. */
  readonly stopped: ChatRequest[];
}

const words = (text: string): number => text.split(/\s+/).filter((word) => word !== "").length;
export const tokensOf = ({ messages }: Pick<ChatRequest, "messages">): number =>
  messages.reduce((sum, { content }) => sum + words(content) + 1, 0);

export function scriptedRuntime(script: Script, { ctxLen = 4096 }: { ctxLen?: number } = {}): ScriptedRuntime {
  const requests: ChatRequest[] = [];
  const counted: ChatRequest[] = [];
  const stopped: ChatRequest[] = [];
  let model = "";
  return {
    requests,
    counted,
    stopped,
    countTokens: async (request) => {
      model = request.model;
      counted.push(request);
      return tokensOf(request);
    },
    loaded: () => [
      {
        name: model,
        digest: "",
        paths: { model: "", adapters: [], files: [] },
        sizeBytes: 0,
        vramBytes: 0,
        ctxLen,
        expiresAt: new Date(0),
        pid: 1,
      },
    ],
    async *chat(request): AsyncGenerator<InferenceEvent, void, void> {
      const answer = script(request, requests.push(request) - 1);
      if (request.truncate === false && tokensOf(request) >= ctxLen) throw new AppError("bad_request", "too long");
      if (answer.error !== undefined) throw answer.error;
      if (answer.thinking !== undefined) yield { kind: "thinking", text: answer.thinking };
      const { text = "" } = answer;
      if (text !== "") yield { kind: "text", text: text.slice(0, text.length >> 1) };
      if (answer.until) await Promise.race([answer.until, aborted(request.signal)]);
      if (request.signal.aborted) {
        stopped.push(request);
        throw new AppError("cancelled", "request canceled");
      }
      if (text !== "") yield { kind: "text", text: text.slice(text.length >> 1) };
      for (const call of answer.calls ?? []) yield { kind: "toolCall", call };
      const statistics = { totalNs: 1, loadNs: 1, promptCachedCount: 0, promptEvalNs: 1, evalNs: 1 };
      yield {
        kind: "done",
        reason: answer.reason ?? "stop",
        statistics: { ...statistics, promptEvalCount: tokensOf(request), evalCount: words(text) },
      };
    },
  };
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
