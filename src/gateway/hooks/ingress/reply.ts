/** Answers: one shape for accepted requests, one for refused ones. */
import type { HookAction } from "../action.ts";
import type { AcceptedBody, HookResponse } from "../queue/deliveries/answer.ts";
import type { RunStatus } from "../queue/deliveries/run-status.ts";
import type { OutcomeBody, RefusalBody } from "./answers.ts";
import type { Refusal } from "./problems.ts";
import type { EndpointReply } from "./ports.ts";

const JSON_TYPE = "application/json; charset=utf-8";
/** Answers are for programs: never cached, never rendered by a browser. */
const COMMON = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

export function jsonReply(
  { status, body }: { readonly status: number; readonly body: unknown },
  { headers = {}, notes = {} }: Partial<Pick<EndpointReply, "headers" | "notes">> = {},
): EndpointReply {
  const text = status === 204 ? undefined : JSON.stringify(body);
  const type = text === undefined ? {} : { "content-type": JSON_TYPE };
  return { status, headers: { ...COMMON, ...type, ...headers }, body: text, notes };
}

export function refusalReply(refusal: Refusal, requestId: string): EndpointReply {
  const { problem, status, headers, details, reason } = refusal;
  const body: RefusalBody = {
    ok: false,
    error: refusal.message,
    code: problem,
    requestId,
    ...(details.length > 0 ? { details: [...details] } : {}),
  };
  return jsonReply(
    { status, body },
    { headers, notes: { code: problem, ...(reason === undefined ? {} : { reason }) } },
  );
}

/** Plain text: the echo that a provider expects. */
export const textReply = (
  { status, contentType, body }: { status: number; contentType: string; body: string },
  notes: EndpointReply["notes"],
): EndpointReply => ({
  status,
  headers: { ...COMMON, "content-type": contentType },
  body: status === 204 ? undefined : body,
  notes,
});

/** The answer to accepted actions; stored, and repeated for the same idempotency key. */
export function acceptedResponse(
  actions: readonly HookAction[],
  { runIds, requestId, warnings }: { runIds: readonly string[]; requestId: string; warnings: readonly string[] },
): HookResponse {
  const [first] = actions;
  const wakes = actions.every((action) => action.kind === "wake");
  const named = namedRuns(actions, runIds);
  const body: AcceptedBody = {
    ok: true,
    ...(first?.kind === "wake" && wakes ? { mode: first.mode } : {}),
    runId: named[0]!, // acceptance requires at least one action
    ...(named.length > 1 ? { runIds: [...named], dispatched: named.length } : {}),
    requestId,
    ...(warnings.length > 0 ? { warnings: [...warnings] } : {}),
  };
  return { status: wakes ? 200 : 202, body };
}

/** Each run once, however many items it has; omits a notice's run, which the sender did not ask for. */
function namedRuns(actions: readonly HookAction[], runIds: readonly string[]): readonly string[] {
  const asked = runIds.filter((_, i) => !isNotice(actions[i]));
  return [...new Set(asked.length > 0 ? asked : runIds)];
}

const isNotice = (action: HookAction | undefined): boolean => action?.kind === "wake" && action.isNotice === true;

/** The same for a sender that waited until its runs ended. */
export function outcomeResponse(
  { body }: HookResponse,
  runs: readonly RunStatus[],
): { readonly status: 200; readonly body: OutcomeBody } {
  const [first] = runs;
  return { status: 200, body: { ...body, ...(first && runs.length === 1 ? { run: first } : { runs: [...runs] }) } };
}
