/** Stripe: `Stripe-Signature: t=<seconds>,v1=<hex>[,v1=…]` over `<t>.<body>`. */
import { hmacScheme } from "./hmac.ts";
import { bodyField, fromHex } from "./scheme.ts";

const HEADER = "stripe-signature";

export const stripe = hmacScheme({
  headers: [HEADER],
  read({ headers }) {
    const pairs = headers[HEADER]?.split(",").map((pair) => pair.trim().split("=", 2));
    if (!pairs) return undefined;
    return {
      timestamp: pairs.find(([key]) => key === "t")?.[1],
      signatures: pairs.filter(([key]) => key === "v1").map(([, value = ""]) => fromHex(value)),
    };
  },
  content: ({ rawBody }, { timestamp }) => [timestamp, ".", rawBody],
  write: (signature, { timestamp }) => ({ [HEADER]: `t=${timestamp},v1=${signature.toString("hex")}` }),
  timestampUnitMs: () => 1000,
  deliveryId: ({ rawBody }) => bodyField(rawBody, "id"),
});
