/** One request on its way from authentication to acceptance. */
import { retryAfter } from "../../../base/index.ts";
import type { HookAction } from "../action.ts";
import type { Pass, Client } from "./authenticator.ts";
import { titleOf } from "../title.ts";
import { keptHeaders } from "./headers.ts";
import type { EndpointReply, HookRequest, IngressDeps, IngressSettings } from "./ports.ts";
import { Refusal } from "./problems.ts";
import { preferredWait, outcomes } from "./prefer.ts";
import { acceptedResponse, jsonReply, outcomeResponse } from "./reply.ts";
import type { Waits } from "./waits.ts";

export interface RequestContext {
  /** The settings at its beginning. */
  readonly settings: IngressSettings;
  readonly request: HookRequest;
  readonly client: Client;
  /** Adds fields to the log line: names and counts, never text of the request. */
  readonly note: (fields: Readonly<Record<string, unknown>>) => void;
  /** Adds headers to the answer. */
  readonly addHeaders: (headers: Readonly<Record<string, string>>) => void;
}

export interface Acceptable {
  readonly pass: Pass;
  readonly rawBody: Uint8Array;
  readonly actions: readonly HookAction[];
  readonly warnings: readonly string[];
  readonly idempotencyKey: string | undefined;
  readonly mappingId?: string;
  /** The body as a mapping sees it. */
  readonly payload?: unknown;
}

/** Stores a request's actions, and answers once they are stored. Throws a `Refusal`, or `storage`. */
export async function acceptActions(
  { accept, runs, waits }: Pick<IngressDeps, "accept" | "runs"> & { readonly waits: Waits },
  { settings, request, client, note }: RequestContext,
  { pass, rawBody, actions, warnings, idempotencyKey, mappingId, payload }: Acceptable,
): Promise<EndpointReply> {
  const accepted = await accept({
    requestId: request.id,
    path: client.path,
    mappingId,
    auth: pass.auth,
    idempotencyKey,
    providerDeliveryId: pass.deliveryId,
    bodySha256: Bun.CryptoHasher.hash("sha256", rawBody, "hex"),
    bodyBytes: rawBody.length,
    rawBody: settings.hooks.queue.keepBodies ? rawBody : undefined,
    headers: keptHeaders(request.headers),
    actions,
    title: titleOf({ actions, payload, headers: Object.fromEntries(request.headers) }),
    now: client.nowMs,
    respond: (runIds) => acceptedResponse(actions, { runIds, requestId: request.id, warnings }),
  });
  if (accepted.kind === "conflict") throw new Refusal("idempotency_conflict");
  if (accepted.kind === "too_many") {
    const reason = `expected at most ${accepted.limit} in one request, got ${actions.length}`;
    throw new Refusal("batch_too_large", { reason, details: [{ field: "items", reason }] });
  }
  if (accepted.kind === "full") {
    const reason = accepted.mappingId === undefined ? "all of it" : "the mapping's share";
    throw new Refusal("queue_full", { headers: retryAfter(accepted.retryAfterMs), reason });
  }
  const { runIds, deliveryId } = accepted;
  const isReplayed = accepted.kind === "replayed";
  note({ delivery: deliveryId, runs: runIds.length, ...(isReplayed ? { replayed: true } : {}) });
  const replayedHeaders = isReplayed ? { "idempotency-replayed": "true" } : {};
  const { response } = accepted;
  if (response.status !== 202) return jsonReply(response, { headers: replayedHeaders });
  const location = `${settings.hooks.path}/runs/${response.body.runId}`;
  const seconds = preferredWait(request.headers);
  const ended = seconds && (await outcomes({ runs, waits }, runIds, { gone: request.signal, seconds }));
  const headers = { ...replayedHeaders, ...(seconds ? { "preference-applied": `wait=${seconds}` } : {}) };
  if (ended) return jsonReply(outcomeResponse(response, ended), { headers });
  return jsonReply(response, { headers: { ...headers, location } });
}
