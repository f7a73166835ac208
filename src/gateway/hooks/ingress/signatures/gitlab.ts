/**
 * GitLab: the secret itself, in `X-Gitlab-Token`. `Idempotency-Key` is a delivery's own, from version 17.4 on; before,
 * there is only `X-Gitlab-Event-UUID`, which events have in common that webhooks caused: it counts with the body.
 */
import { createHash } from "node:crypto";
import { anyEqual, refused, textSecret, type SignatureScheme } from "./scheme.ts";

const HEADER = "x-gitlab-token";

/** Equal lengths, so that the comparison tells nothing of them. */
const digest = (text: string): Uint8Array => createHash("sha256").update(text).digest();

export const gitlab: SignatureScheme = {
  checkSecret: textSecret,
  credentialHeaders: () => [HEADER],
  verify({ secrets }, { headers, rawBody }) {
    const given = headers[HEADER];
    if (given === undefined) return refused("the token header is missing");
    if (!anyEqual([digest(given)], secrets.map(digest))) return refused("the token does not match");
    const event = headers["x-gitlab-event-uuid"];
    const deliveryId =
      headers["idempotency-key"] ?? (event && `${event}:${createHash("sha256").update(rawBody).digest("hex")}`);
    return { ok: true, ...(deliveryId ? { deliveryId } : {}) };
  },
  sign: ({ secrets }, { id }) => ({ [HEADER]: secrets[0] ?? "", "x-gitlab-event-uuid": id }),
};
