/**
 * GitLab: the secret itself, in `X-Gitlab-Token`. From version 17.4 on, `Idempotency-Key` identifies a delivery;
 * earlier versions have only `X-Gitlab-Event-UUID`, which events caused by webhooks share, so the id is made of it and
 * the body.
 */
import { createHash } from "node:crypto";
import { isOneOf, refused, textSecret, type SignatureScheme } from "./scheme.ts";

const HEADER = "x-gitlab-token";

export const gitlab: SignatureScheme = {
  checkSecret: textSecret,
  credentialHeaders: () => [HEADER],
  verify({ secrets }, { headers, rawBody }) {
    const given = headers[HEADER];
    if (given === undefined) return refused("the token header is missing");
    if (!isOneOf(given, secrets)) return refused("the token does not match");
    const event = headers["x-gitlab-event-uuid"];
    const deliveryId =
      headers["idempotency-key"] ?? (event && `${event}:${createHash("sha256").update(rawBody).digest("hex")}`);
    return { ok: true, ...(deliveryId ? { deliveryId } : {}) };
  },
  sign: ({ secrets }, { id }) => ({ [HEADER]: secrets[0] ?? "", "x-gitlab-event-uuid": id }),
};
