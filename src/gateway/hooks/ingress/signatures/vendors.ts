/** Senders whose signatures a form describes. docs/senders.md has the same table. */
import { FORM_DEFAULT, type SignatureForm } from "./form.ts";

const form = (own: Partial<SignatureForm>): SignatureForm => ({ ...FORM_DEFAULT, ...own });

/** For the many senders that write `t=…,v1=…` into a header. */
const timed = (header: string, own: Partial<SignatureForm> = {}): SignatureForm =>
  form({
    signature: { headers: [header] },
    prefix: "v1=",
    timestamp: { prefix: "t=" },
    signedContent: "{timestamp}.{body}",
    ...own,
  });

/** With a shared key. */
export const SHARED_KEY_FORMS = {
  github: form({
    signature: { headers: ["x-hub-signature-256"] },
    prefix: "sha256=",
    id: { headers: ["x-github-delivery"] },
  }),
  gitea: form({
    signature: { headers: ["x-gitea-signature", "x-forgejo-signature"] },
    id: { headers: ["x-gitea-delivery", "x-forgejo-delivery"] },
  }),
  shopify: form({
    signature: { headers: ["x-shopify-hmac-sha256"] },
    encoding: "base64",
    id: { headers: ["x-shopify-webhook-id"] },
  }),
  /** The header of the timestamp is not signed. */
  sentry: form({ signature: { headers: ["sentry-hook-signature"] }, id: { headers: ["request-id"] } }),
  linear: form({
    signature: { headers: ["linear-signature"] },
    timestamp: { fields: ["webhookTimestamp"] },
    timestampUnit: "ms",
    toleranceSeconds: 60,
    id: { headers: ["linear-delivery"] },
  }),
  slack: form({
    signature: { headers: ["x-slack-signature"] },
    prefix: "v0=",
    timestamp: { headers: ["x-slack-request-timestamp"] },
    signedContent: "v0:{timestamp}:{body}",
    id: { fields: ["event_id"] },
  }),
  stripe: timed("stripe-signature", { id: { fields: ["id"] } }),
  mux: timed("mux-signature", { id: { fields: ["id"] } }),
  workos: timed("workos-signature", { timestampUnit: "ms", id: { fields: ["id"] } }),
  paddle: timed("paddle-signature", {
    prefix: "h1=",
    timestamp: { prefix: "ts=" },
    signedContent: "{timestamp}:{body}",
    id: { fields: ["event_id"] },
  }),
  pagerduty: form({
    signature: { headers: ["x-pagerduty-signature"] },
    prefix: "v1=",
    id: { fields: ["event.id"] },
  }),
  /** Outgoing webhooks. */
  teams: form({
    signature: { headers: ["authorization"] },
    prefix: "HMAC ",
    encoding: "base64",
    keyEncoding: "base64",
    id: { fields: ["id"] },
  }),
  /** Does not sign the body: a signature is valid once, for the delivery with its token. */
  mailgun: form({
    signature: { fields: ["signature.signature", "signature"] },
    timestamp: { fields: ["signature.timestamp", "timestamp"] },
    signedContent: "{timestamp}{id}",
    id: { fields: ["signature.token", "token"] },
  }),
  twilio: form({
    signature: { headers: ["x-twilio-signature"] },
    algorithm: "sha1",
    encoding: "base64",
    signedContent: "{url}{form}",
  }),
} as const satisfies Record<string, SignatureForm>;

/** With a key pair; the sender has the private key. */
export const KEY_PAIR_FORMS = {
  discord: form({
    signature: { headers: ["x-signature-ed25519"] },
    timestamp: { headers: ["x-signature-timestamp"] },
    signedContent: "{timestamp}{body}",
  }),
  sendgrid: form({
    signature: { headers: ["x-twilio-email-event-webhook-signature"] },
    encoding: "base64",
    timestamp: { headers: ["x-twilio-email-event-webhook-timestamp"] },
    signedContent: "{timestamp}{body}",
  }),
  telnyx: form({
    signature: { headers: ["telnyx-signature-ed25519"] },
    encoding: "base64",
    timestamp: { headers: ["telnyx-timestamp"] },
    signedContent: "{timestamp}|{body}",
    id: { fields: ["data.id"] },
  }),
} as const satisfies Record<string, SignatureForm>;
