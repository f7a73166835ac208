/** What is to be accepted. */
import type { Script } from "../../../database/store.ts";
import type { HookAction } from "../../action.ts";
import type { HookResponse } from "./answer.ts";

/** A request that is authentic and valid. */
export interface AcceptRequest {
  /** Made before it is stored, so that it is stored once however often that is tried; absent: it is tried once. */
  readonly deliveryId?: string;
  readonly requestId: string;
  /** Relative to the ingress, normalized. */
  readonly path: string;
  /** Absent: a fixed endpoint. */
  readonly mappingId?: string | undefined;
  /** Which credential it came with; never the credential. */
  readonly auth: { readonly kind: string; readonly id: string };
  readonly idempotencyKey?: string | undefined;
  /** The sender's own id of this delivery, from a verified request. */
  readonly providerDeliveryId?: string | undefined;
  /** Hex. */
  readonly bodySha256: string;
  readonly bodyBytes: number;
  /** Absent: not kept. */
  readonly rawBody?: Uint8Array | undefined;
  /** Only what may be kept: no credentials. */
  readonly headers: Readonly<Record<string, string>>;
  readonly actions: readonly HookAction[];
  /** What it is about, in a line for operators. */
  readonly title?: string | undefined;
  /** Epoch milliseconds. */
  readonly now: number;
  /** @param runIds one for each action, in order; of an item that was sent before, its first */
  readonly respond: (runIds: readonly string[]) => HookResponse;
  /** What is to be written together with the acceptance, or not at all. */
  readonly alongside?: () => Script<void>;
}
