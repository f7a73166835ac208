/** Gitea and Forgejo: `X-Gitea-Signature: <hex>` over the body. */
import { hmacScheme } from "./hmac.ts";
import { fromHex } from "./scheme.ts";

const HEADER = "x-gitea-signature";

export const gitea = hmacScheme({
  headers: [HEADER, "x-forgejo-signature", "x-gogs-signature", "x-hub-signature-256", "x-hub-signature"],
  read({ headers }) {
    const value = headers[HEADER] ?? headers["x-forgejo-signature"];
    return value === undefined ? undefined : { signatures: [fromHex(value)] };
  },
  content: ({ rawBody }) => [rawBody],
  write: (signature, { id }) => ({ [HEADER]: signature.toString("hex"), "x-gitea-delivery": id }),
  deliveryId: ({ headers }) => headers["x-gitea-delivery"] ?? headers["x-forgejo-delivery"],
});
