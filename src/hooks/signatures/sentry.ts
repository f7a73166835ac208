/** Sentry: `Sentry-Hook-Signature: <hex>` over the body, beside a timestamp that is not signed. */
import { hmacScheme } from "./hmac.ts";
import { fromHex } from "./scheme.ts";

const HEADER = "sentry-hook-signature";

export const sentry = hmacScheme({
  headers: [HEADER],
  read({ headers }) {
    const value = headers[HEADER];
    return value === undefined ? undefined : { signatures: [fromHex(value)] };
  },
  content: ({ rawBody }) => [rawBody],
  write: (signature, { id }) => ({ [HEADER]: signature.toString("hex"), "request-id": id }),
  deliveryId: ({ headers }) => headers["request-id"],
});
