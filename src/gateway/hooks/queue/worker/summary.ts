/**
 * The event that a run posts to the main session, `Hook <name>: <summary>`. The summary is a model's answer to outside
 * text, and the name may be the sender's, so both count as outside text.
 */
import { external, type TaintedText } from "../../../agent/boundary/tainted-text.ts";
import type { AgentAction } from "../../action.ts";
import type { Outcome } from "../deliveries/state.ts";

const LENGTH_MAX = 2000; // UTF-16 units

export interface SummaryParts {
  readonly outcome: Outcome;
  readonly answer: string | null;
  readonly reason: string | null;
}

const STATUS = { error: "error", dead: "error", timeout: "timeout", cancelled: "cancelled" } as const;

export function summaryOf({ name }: Pick<AgentAction, "name">, parts: SummaryParts): TaintedText {
  const { outcome, answer, reason } = parts;
  const said = answer?.trim() || reason?.trim() || outcome;
  const head = name.trim() === "Hook" ? "Hook" : `Hook ${name.trim()}`; // avoids "Hook Hook"
  const status = outcome === "ok" ? "" : ` (${STATUS[outcome]})`;
  return external(`${head}${status}: ${cut(said, LENGTH_MAX)}`);
}

/** The event for a reply that failed, or may not have arrived. */
export function replyProblem({ name }: Pick<AgentAction, "name">, { kind, reason }: ReplyProblem): TaintedText {
  const what = kind === "failed" ? "could not be delivered" : "may not have been delivered, and is not sent again";
  return external(`Hook ${name.trim()}: the reply ${what}: ${cut(reason ?? "no reason given", 500)}`);
}

export interface ReplyProblem {
  readonly kind: "failed" | "unknown";
  readonly reason?: string | undefined;
}

/** Cuts to at most `max` UTF-16 units, with an ellipsis, never inside a surrogate pair. */
function cut(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
