/** A turn whose call waits for an approval: its run returns to the queue, and its chat is asked once per call. */
import { type Approval, approvalsOf, setAsked } from "../../../agent/calls/approvals.ts";
import { oneLine } from "../../../agent/boundary/index.ts";
import type { Target } from "../../../channels/channel.ts";
import type { Transaction } from "../../../database/store.ts";
import { moveRun, type Run, type TurnRun } from "../deliveries/runs.ts";
import type { Context } from "./conclude.ts";

const ARGUMENTS_CHARS_MAX = 1000;

/** @param until of the call that the turn waits for, in epoch milliseconds */
export function* waitForApproval(run: TurnRun, until: number, { ports, now }: Context): Transaction<Run> {
  const waiting = yield* approvalsOf(run.id);
  const chat = waiting.some(({ wasAsked }) => !wasAsked) ? yield* chatFor(run, ports) : undefined;
  for (const approval of waiting.filter(({ wasAsked }) => !wasAsked)) {
    if (chat)
      yield* ports.addReply({ groupId: `approval:${approval.code}`, target: chat, text: question(approval), now });
    yield* setAsked(approval.code, chat, now);
  }
  // decided since the turn's check, so the run continues at once
  const nextAt = waiting.length > 0 ? until : now;
  const names = [...new Set(waiting.map(({ tool }) => tool))].join(", ");
  const reason = waiting.length > 0 ? `waits for an approval: ${names}` : null;
  return yield* moveRun(run, "release", now, { nextAt, attempts: run.attempts - 1, reason });
}

/** The chat that the turn answers to; undefined: none. */
function* chatFor({ action }: TurnRun, ports: Context["ports"]): Transaction<Target | undefined> {
  if (!action.deliver) return undefined;
  const { channel, to } = action;
  const found = yield* ports.resolveTarget({ channel, ...(to === undefined ? {} : { to }) });
  return "reason" in found ? undefined : found;
}

/**
 * Tool and arguments are text of the model: each stays on one line, as code, so that Markdown in it hides nothing.
 * Backticks, which would end the code, are written as escapes of JSON.
 */
const question = ({ code, tool, arguments: args, expiresAt }: Approval): string =>
  [
    `Approval needed: may \`${oneLine(tool).replaceAll("`", "'")}\` be called?`,
    `\`\`\`\n${oneLine(JSON.stringify(args), ARGUMENTS_CHARS_MAX).replaceAll("`", "\\u0060")}\n\`\`\``,
    `Reply "yes ${code}" to allow this one call, or "no ${code}" to refuse it, before ${new Date(expiresAt).toISOString()}.`,
  ].join("\n");
