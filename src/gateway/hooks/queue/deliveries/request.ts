/** A request to accept. */
import type { Transaction } from "../../../database/store.ts";
import type { HookAction } from "../../action.ts";
import type { HookResponse } from "./answer.ts";

/** An authenticated and valid request. */
export interface AcceptRequest {
  /** Chosen by the caller to store the delivery once, however often it retries; absent: it tries once. */
  readonly deliveryId?: string;
  readonly requestId: string;
  /** Relative to the ingress, normalized. */
  readonly path: string;
  /** Absent: a fixed endpoint. */
  readonly mappingId?: string | undefined;
  /** The kind and id of the credential; never the credential. */
  readonly auth: { readonly kind: string; readonly id: string };
  readonly idempotencyKey?: string | undefined;
  /** The sender's own id of this delivery, from a verified request. */
  readonly providerDeliveryId?: string | undefined;
  /** Hexadecimal. */
  readonly bodySha256: string;
  readonly bodyBytes: number;
  /** Absent: not kept. */
  readonly rawBody?: Uint8Array | undefined;
  /** Without credentials. */
  readonly headers: Readonly<Record<string, string>>;
  readonly actions: readonly HookAction[];
  /** Subject in one line, for operators. */
  readonly title?: string | undefined;
  /** Epoch milliseconds. */
  readonly now: number;
  /** @param runIds one for each action, in order; an item that was sent before has its first run */
  readonly respond: (runIds: readonly string[]) => HookResponse;
  /** Writes that succeed or fail together with the acceptance. */
  readonly alongside?: () => Transaction<void>;
}
