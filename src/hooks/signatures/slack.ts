/** Slack: `X-Slack-Signature: v0=<hex>` over `v0:<timestamp>:<body>`. */
import { hmacScheme } from "./hmac.ts";
import { bodyField, fromHex } from "./scheme.ts";

const HEADER = "x-slack-signature";
const TIME = "x-slack-request-timestamp";
const PREFIX = "v0=";

export const slack = hmacScheme({
  headers: [HEADER],
  read({ headers }) {
    const value = headers[HEADER];
    if (!value?.startsWith(PREFIX)) return undefined;
    return { signatures: [fromHex(value.slice(PREFIX.length))], timestamp: headers[TIME] };
  },
  content: ({ rawBody }, { timestamp }) => [`v0:${timestamp}:`, rawBody],
  write: (signature, { timestamp }) => ({ [HEADER]: PREFIX + signature.toString("hex"), [TIME]: timestamp }),
  timestampUnitMs: () => 1000,
  deliveryId: ({ rawBody }) => bodyField(rawBody, "event_id"),
});
