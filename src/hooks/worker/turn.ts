/**
 * Runs the model for one claimed run: the prompt behind its boundary, a time limit that stops the model, and an answer
 * in every case.
 */
import { renderPassage } from "../../agent/boundary/index.ts";
import type { TurnRequest, TurnResult } from "../../agent/turn.ts";
import { AppError, messageOf, type Code } from "../../base/errors.ts";
import type { AgentAction } from "../action.ts";
import type { Run } from "../deliveries/runs.ts";
import { sourceOf } from "./conclude.ts";
import type { WorkerPorts } from "./ports.ts";

/** How long a turn that was told to stop may take to do so, before it is left alone. */
const STOP_MS = 5000;

/** What may work another time. */
const TEMPORARY: ReadonlySet<Code> = new Set<Code>(["busy", "runner", "storage", "timeout", "upstream", "registry"]);

/** What there is of a turn that came to nothing. */
const NOTHING = {
  text: "",
  isTruncated: false,
  usage: { promptTokens: 0, completionTokens: 0, rounds: 0, toolCalls: 0 },
  record: { entries: [], seen: [] },
} as const;

export interface TurnOptions {
  readonly ports: Pick<WorkerPorts, "runTurn">;
  /** Where the action does not say. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly onText: (text: string) => void;
}

/** Never rejects. */
export async function takeTurn(run: Run, action: AgentAction, options: TurnOptions): Promise<TurnResult> {
  const timeoutMs = action.timeoutSeconds === undefined ? options.timeoutMs : action.timeoutSeconds * 1000;
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([options.signal, timeout]);
  const request: TurnRequest = {
    runId: run.id,
    sessionKey: run.sessionKey,
    prompt: renderPassage(action.message, { isWrapped: action.isWrapped, source: sourceOf(run) }),
    timeoutMs,
    tools: action.tools,
    signal,
    onText: options.onText,
    ...(action.model === undefined ? {} : { model: action.model }),
    ...(action.thinking === undefined ? {} : { thinking: action.thinking }),
  };
  const result = await orStopped((async () => options.ports.runTurn(request))(), signal);
  if (result.status === "ok" || !timeout.aborted || options.signal.aborted) return result;
  return { ...result, status: "timeout", error: `the turn took longer than ${timeoutMs / 1000} s` };
}

/** What a turn comes to; where it does not stop when told, it is over without it. */
function orStopped(turn: Promise<TurnResult>, signal: AbortSignal): Promise<TurnResult> {
  const { promise, resolve } = Promise.withResolvers<TurnResult>();
  let timer: Timer | undefined;
  const stop = (): void => {
    timer = setTimeout(() => resolve({ ...NOTHING, status: "cancelled" }), STOP_MS);
  };
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop);
  turn.then(resolve, (error: unknown) => resolve(failure(error)));
  return promise.finally(() => {
    signal.removeEventListener("abort", stop);
    clearTimeout(timer);
  });
}

function failure(error: unknown): TurnResult {
  if (error instanceof AppError && error.code === "cancelled") return { ...NOTHING, status: "cancelled" };
  // what nobody expected may not happen again; the number of attempts is limited
  const isTemporary = !(error instanceof AppError) || TEMPORARY.has(error.code);
  return { ...NOTHING, status: "error", error: messageOf(error), isTemporary };
}
