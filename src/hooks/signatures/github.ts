/** GitHub: `X-Hub-Signature-256: sha256=<hex>` over the body. */
import { hmacScheme } from "./hmac.ts";
import { fromHex } from "./scheme.ts";

const HEADER = "x-hub-signature-256";
const PREFIX = "sha256=";

export const github = hmacScheme({
  headers: [HEADER, "x-hub-signature"],
  read({ headers }) {
    const value = headers[HEADER];
    return value?.startsWith(PREFIX) ? { signatures: [fromHex(value.slice(PREFIX.length))] } : undefined;
  },
  content: ({ rawBody }) => [rawBody],
  write: (signature, { id }) => ({ [HEADER]: PREFIX + signature.toString("hex"), "x-github-delivery": id }),
  deliveryId: ({ headers }) => headers["x-github-delivery"],
});
