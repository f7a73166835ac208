/** Linear: `Linear-Signature: <hex>` over the body, whose `webhookTimestamp` (milliseconds) must be of this minute. */
import { hmacScheme } from "./hmac.ts";
import { bodyField, fromHex } from "./scheme.ts";

const HEADER = "linear-signature";

export const linear = hmacScheme({
  headers: [HEADER],
  read({ headers, rawBody }) {
    const value = headers[HEADER];
    if (value === undefined) return undefined;
    return { signatures: [fromHex(value)], timestamp: bodyField(rawBody, "webhookTimestamp") };
  },
  content: ({ rawBody }) => [rawBody],
  write: (signature, { id }) => ({ [HEADER]: signature.toString("hex"), "linear-delivery": id }),
  timestampUnitMs: () => 1,
  toleranceSeconds: 60,
  deliveryId: ({ headers }) => headers["linear-delivery"],
});
