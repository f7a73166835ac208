/**
 * Turns a mail into its run, in the same way as a request to the mail mapping: with the mapping's templates, conditions
 * and transform, and the same checks. The run, and the mark that the mail was handled, are written together.
 */
import { createHash } from "node:crypto";
import { AppError, messageOf } from "../../../base/index.ts";
import { operator, type TaintedText, plain } from "../../agent/boundary/tainted-text.ts";
import type { Transaction, Store } from "../../database/store.ts";
import type { HookAction } from "../action.ts";
import type { AcceptRequest } from "../queue/deliveries/request.ts";
import { titleOf } from "../title.ts";
import { checkAction, ownModelOf } from "../ingress/checks.ts";
import type { IngressDeps } from "../ingress/ports.ts";
import { Refusal } from "../ingress/problems.ts";
import { acceptedResponse } from "../ingress/reply.ts";
import { type Mapping, type MappingRequest, type Mappings, runMapping } from "../mapping/index.ts";
import type { MailItem } from "./message.ts";

/** The path of mails that are posted. */
const PATH = "mail";
const AUTH = "mailbox";
/** Delay if an operator has to fix something, or a problem is short. */
const WAIT_MS = 15_000;
/** Maximum attempts for a mail whose transform fails. */
const FAILURES_MAX = 5;

export interface HandOverDeps extends Pick<
  IngressDeps,
  "settings" | "mappings" | "transforms" | "checks" | "accept" | "now"
> {
  readonly store: Pick<Store, "read" | "write">;
}

export interface HandOver {
  readonly item: MailItem;
  /** The account, for the delivery's record. */
  readonly account: string;
  /** Attempts for this mail so far. */
  readonly failures: number;
  /** Marks the mail as handled, in the transaction of its acceptance. */
  readonly mark: () => Transaction<void>;
  readonly signal: AbortSignal;
}

export type HandedOver =
  | { readonly kind: "accepted"; readonly deliveryId: string }
  /** The mapping produces no action. */
  | { readonly kind: "nothing" }
  /** This mail can never be accepted; the main session gets an event. */
  | { readonly kind: "refused"; readonly reason: string }
  /** Nothing was written: try again later. */
  | { readonly kind: "later"; readonly reason: string; readonly afterMs: number; readonly isFailure?: boolean };

/** Retrying is cheap, because no network is involved. */
const FULL: HandedOver = { kind: "later", reason: "the queue is full", afterMs: 5000 };

/** Never throws for a fault of a mail or the configuration. */
export async function handOver(deps: HandOverDeps, mail: HandOver): Promise<HandedOver> {
  try {
    return await attempt(deps, mail);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { kind: "later", reason: reasonOf(error), afterMs: WAIT_MS };
  }
}

async function attempt(deps: HandOverDeps, mail: HandOver): Promise<HandedOver> {
  const settings = deps.settings();
  const payload = { source: "imap", messages: [mail.item] };
  const asked: MappingRequest = { path: PATH, query: {}, headers: {}, payload, now: deps.now() };
  const mappings = deps.mappings(settings);
  const mapping = ownerOf(asked, mappings);
  if (mapping instanceof AppError) return refuse(deps, mail, mapping.message);
  if (!mapping) return later("no mapping takes mails: add 'mail' to hooks.presets");
  if (!mapping.plan.ok) return later(`mapping '${mapping.id}' cannot be used: ${mapping.plan.problem}`);
  const channels = deps.checks.channels();
  const outcome = await runMapping(mapping, asked, {
    transforms: deps.transforms,
    transformsDir: mappings.transformsDir,
    transformTimeoutMs: mappings.transformTimeoutMs,
    isChannel: (name) => channels.find(name) !== undefined,
    signal: mail.signal,
  });
  if (outcome.kind === "nothing") {
    await deps.store.write(mail.mark);
    return { kind: "nothing" };
  }
  if (outcome.kind === "actions") {
    const checked = await checkAll(deps, mapping, outcome.actions);
    return "reason" in checked
      ? refuse(deps, mail, checked.reason)
      : acceptMail(deps, mail, { mapping, payload, ...checked });
  }
  const { code, reason } = outcome;
  if (code === "busy" || code === "cancelled") return later(reason);
  const isGivenUp = code !== "mapping_failed" || mail.failures + 1 >= FAILURES_MAX;
  return isGivenUp ? refuse(deps, mail, reason) : { ...later(reason), isFailure: true };
}

/** An error if a condition can never decide about this mail. */
function ownerOf(asked: MappingRequest, { find }: Mappings): Mapping | AppError | undefined {
  try {
    return find(asked);
  } catch (error) {
    if (error instanceof AppError && error.code === "too_large") return error;
    throw error;
  }
}

const later = (reason: string): Extract<HandedOver, { kind: "later" }> => ({ kind: "later", reason, afterMs: WAIT_MS });

const reasonOf = (error: AppError): string =>
  error instanceof Refusal && error.reason !== undefined ? `${error.message}: ${error.reason}` : messageOf(error);

/** Returns a mail's own fault as `reason`; throws a fault of the configuration. */
async function checkAll(
  { checks }: HandOverDeps,
  { config }: Mapping,
  actions: readonly HookAction[],
): Promise<{ readonly actions: readonly HookAction[] } | { readonly reason: string }> {
  try {
    const checked = await Promise.all(actions.map((action) => checkAction(action, checks, ownModelOf(config))));
    return { actions: checked.map(({ action }) => action) };
  } catch (error) {
    if (error instanceof Refusal && error.problem === "session_key_not_allowed") return { reason: reasonOf(error) };
    throw error;
  }
}

interface Taken {
  readonly mapping: Mapping;
  readonly payload: object;
  readonly actions: readonly HookAction[];
}

async function acceptMail(
  deps: HandOverDeps,
  mail: HandOver,
  { mapping, payload, actions }: Taken,
): Promise<HandedOver> {
  const { account, mark } = mail;
  const rawBody = new TextEncoder().encode(JSON.stringify(payload));
  const accepted = await deps.accept({
    ...record(deps, account, { rawBody, actions }),
    mappingId: mapping.id,
    title: titleOf({ actions, payload }),
    rawBody: deps.settings().hooks.queue.keepBodies ? rawBody : undefined,
    alongside: mark,
  });
  if (accepted.kind === "full") return FULL;
  if (accepted.kind === "too_many") return refuse(deps, mail, `it asks for more than ${accepted.limit} runs`);
  return accepted.kind === "conflict" // only for idempotency keys, which mails do not have
    ? later("another request has this mail's key")
    : { kind: "accepted", deliveryId: accepted.deliveryId };
}

/** Logs a mail that cannot be accepted; never drops it silently. */
async function refuse(deps: HandOverDeps, { account, mark, item }: HandOver, reason: string): Promise<HandedOver> {
  const text = operator(
    `A mail to ${account} could not be handed over: its mapping does not take it. See the log of the server.`,
  );
  const accepted = await tellMain(deps, { account, text, itemId: `refused ${item.id}`, alongside: mark });
  if (accepted.kind === "full") return FULL;
  return { kind: "refused", reason };
}

export interface Notice {
  readonly account: string;
  readonly text: TaintedText;
  /** The first of equal problems is reported. */
  readonly itemId: string;
  readonly alongside?: () => Transaction<void>;
}

/** An event for the main session. */
export function tellMain(
  deps: HandOverDeps,
  { account, text, itemId, alongside }: Notice,
): ReturnType<HandOverDeps["accept"]> {
  const action: HookAction = { kind: "wake", text, mode: "next-heartbeat", isWrapped: true, itemId };
  const rawBody = new TextEncoder().encode(plain(text));
  return deps.accept({
    ...record(deps, account, { rawBody, actions: [action] }),
    ...(alongside ? { alongside } : {}),
  });
}

function record(
  { now }: HandOverDeps,
  account: string,
  { rawBody, actions }: { rawBody: Uint8Array; actions: readonly HookAction[] },
): AcceptRequest {
  const requestId = crypto.randomUUID();
  return {
    requestId,
    path: PATH,
    auth: { kind: AUTH, id: account },
    bodySha256: createHash("sha256").update(rawBody).digest("hex"),
    bodyBytes: rawBody.length,
    headers: {},
    actions,
    now: now(),
    respond: (runIds) => acceptedResponse(actions, { runIds, requestId, warnings: [] }),
  };
}
