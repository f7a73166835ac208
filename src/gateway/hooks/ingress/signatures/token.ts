/** Schemes that send the secret itself: in a header, or as the user and the password of HTTP Basic. */
import { bodyFields } from "./body-fields.ts";
import { isOneOf, refused, textSecret, type SecretSettings, type SignatureScheme } from "./scheme.ts";

export interface TokenSettings extends SecretSettings {
  readonly header: string;
  /** Text before the secret. */
  readonly prefix: string;
  readonly idHeader?: string | undefined;
  readonly idField?: string | undefined;
}

export const token: SignatureScheme<TokenSettings> = {
  checkSecret: textSecret,
  credentialHeaders: ({ header }) => [header.toLowerCase()],
  verify({ secrets, header, prefix, idHeader, idField }, request) {
    const given = request.headers[header.toLowerCase()];
    if (given === undefined || !given.startsWith(prefix)) return refused("the token header is missing");
    if (!isOneOf(given.slice(prefix.length).trim(), secrets)) return refused("the token does not match");
    const deliveryId = idHeader ? request.headers[idHeader.toLowerCase()] : idField && bodyFields(request)(idField);
    return { ok: true, ...(deliveryId ? { deliveryId } : {}) };
  },
  sign: ({ secrets, header, prefix, idHeader }, { id }) => ({
    [header.toLowerCase()]: prefix + (secrets[0] ?? ""),
    ...(idHeader ? { [idHeader.toLowerCase()]: id } : {}),
  }),
};

const HEADER = "authorization";

/** RFC 7617; a secret is `user:password`. */
export const basic: SignatureScheme = {
  checkSecret(secret) {
    const at = secret.indexOf(":");
    return at < 0
      ? { ok: false, expected: "a user and a password, as user:password" }
      : { ok: true, keyBytes: Buffer.byteLength(secret.slice(at + 1)) };
  },
  credentialHeaders: () => [HEADER],
  verify({ secrets }, { headers }) {
    const encoded = /^basic\s+([\w+/=-]+)$/i.exec(headers[HEADER]?.trim() ?? "")?.[1];
    if (encoded === undefined) return refused("there are no Basic credentials");
    const given = Buffer.from(encoded, "base64").toString();
    return isOneOf(given, secrets) ? { ok: true } : refused("the user or the password does not match");
  },
  sign: ({ secrets }) => ({ [HEADER]: `Basic ${Buffer.from(secrets[0] ?? "").toString("base64")}` }),
};
