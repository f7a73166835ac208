/** Discord: Ed25519, in hex, over `<timestamp><body>`; the secret is the application's public key, in hex. */
import { sign, verify } from "node:crypto";
import { privateKeyOf, publicKeyOf } from "./ed25519.ts";
import { TOLERANCE_SECONDS } from "./hmac.ts";
import { fromHex, refused, timestampProblem, type SignatureScheme } from "./scheme.ts";

const HEADER = "x-signature-ed25519";
const TIME = "x-signature-timestamp";

export const discord: SignatureScheme = {
  checkSecret: (secret) =>
    fromHex(secret)?.length === 32
      ? { ok: true }
      : { ok: false, expected: "the application's public key, 64 hexadecimal digits" },
  credentialHeaders: () => [HEADER],
  verify({ secrets, toleranceSeconds = TOLERANCE_SECONDS }, { headers, rawBody, nowMs }) {
    const signature = fromHex(headers[HEADER] ?? "");
    const timestamp = headers[TIME];
    if (!signature) return refused("the signature header is missing or malformed");
    const problem = timestampProblem(timestamp, { nowMs, toleranceSeconds, unitMs: 1000 });
    if (problem) return refused(problem);
    const content = Buffer.concat([Buffer.from(timestamp ?? ""), rawBody]);
    const keys = secrets.map((secret) => publicKeyOf(fromHex(secret))).filter((key) => key !== undefined);
    if (!keys.some((key) => verify(null, content, key, signature))) return refused("no signature matches");
    return { ok: true };
  },
  /** Signs with a private key, 32 bytes in hex, where the settings of a receiver have the public one. */
  sign({ secrets }, { rawBody, nowMs }) {
    const timestamp = String(Math.floor(nowMs / 1000));
    const seed = fromHex(secrets[0] ?? "") ?? new Uint8Array();
    const signature = sign(null, Buffer.concat([Buffer.from(timestamp), rawBody]), privateKeyOf(seed));
    return { [HEADER]: signature.toString("hex"), [TIME]: timestamp };
  },
};
