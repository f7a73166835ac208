/** Shopify: `X-Shopify-Hmac-Sha256: <base64>` over the body. */
import { hmacScheme } from "./hmac.ts";
import { fromBase64 } from "./scheme.ts";

const HEADER = "x-shopify-hmac-sha256";

export const shopify = hmacScheme({
  headers: [HEADER],
  read({ headers }) {
    const value = headers[HEADER];
    return value === undefined ? undefined : { signatures: [fromBase64(value)] };
  },
  content: ({ rawBody }) => [rawBody],
  write: (signature, { id }) => ({ [HEADER]: signature.toString("base64"), "x-shopify-webhook-id": id }),
  deliveryId: ({ headers }) => headers["x-shopify-webhook-id"],
});
