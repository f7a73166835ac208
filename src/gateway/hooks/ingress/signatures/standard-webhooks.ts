/**
 * Standard Webhooks, and Svix with headers of its own: `webhook-signature: v1,<base64> …` over
 * `<id>.<timestamp>.<body>`. `v1` is an HMAC with a secret (`whsec_…`), `v1a` an Ed25519 signature with a key pair
 * (`whpk_…` verifies, `whsk_…` signs). See standardwebhooks.com.
 */
import { createHmac, sign, verify } from "node:crypto";
import { privateKeyOf, publicKeyOf } from "./ed25519.ts";
import { TOLERANCE_SECONDS } from "./form.ts";
import {
  anyEqual,
  fromBase64,
  refused,
  SIGNATURES_MAX,
  timestampProblem,
  type KeySide,
  type SecretVerdict,
  type SignatureScheme,
  type SignedRequest,
} from "./scheme.ts";

const PREFIXES = ["webhook", "svix"] as const;

const namesOf = (prefix: string) => ({
  id: `${prefix}-id`,
  timestamp: `${prefix}-timestamp`,
  signature: `${prefix}-signature`,
});

/** The three headers under one prefix; undefined if one is missing. */
function proofUnder(prefix: string, headers: SignedRequest["headers"]) {
  const names = namesOf(prefix);
  const { [names.id]: id, [names.timestamp]: timestamp, [names.signature]: list } = headers;
  return id && timestamp && list ? { id, timestamp, list } : undefined;
}

/** @param own prefix of the headers that we write; both prefixes are read, because the same senders use both */
function standardScheme(own: (typeof PREFIXES)[number]): SignatureScheme {
  const names = namesOf(own);
  const prefixes = PREFIXES.toSorted((a, b) => Number(b === own) - Number(a === own));
  return {
    checkSecret,
    credentialHeaders: () => PREFIXES.map((prefix) => namesOf(prefix).signature),
    verify({ secrets, toleranceSeconds = TOLERANCE_SECONDS }, request) {
      const proof = prefixes.map((prefix) => proofUnder(prefix, request.headers)).find((found) => found !== undefined);
      if (!proof) return refused("a signature header is missing");
      const { id, timestamp, list } = proof;
      const problem = timestampProblem(timestamp, { nowMs: request.nowMs, toleranceSeconds, unitMs: 1000 });
      if (problem) return refused(problem);
      const signatures = list.split(/[ ]+/).slice(0, SIGNATURES_MAX);
      const content = signedContent(request, { id, timestamp });
      const isRight = secrets.map((secret) => matches(secret, { signatures, content })).includes(true);
      return isRight ? { ok: true, deliveryId: id } : refused("no signature matches");
    },
    sign({ secrets }, request) {
      const timestamp = String(Math.floor(request.nowMs / 1000));
      const content = signedContent(request, { id: request.id, timestamp });
      return {
        [names.id]: request.id,
        [names.timestamp]: timestamp,
        [names.signature]: signatureOf(secrets[0] ?? "", content),
      };
    },
  };
}

function signedContent({ rawBody }: SignedRequest, { id, timestamp }: { id: string; timestamp: string }): Buffer {
  return Buffer.concat([Buffer.from(`${id}.${timestamp}.`), rawBody]);
}

const valuesOf = (signatures: readonly string[], version: string): Uint8Array[] =>
  signatures
    .filter((signature) => signature.startsWith(`${version},`))
    .map((signature) => fromBase64(signature.slice(version.length + 1)))
    .filter((bytes) => bytes !== undefined);

function matches(secret: string, { signatures, content }: { signatures: readonly string[]; content: Buffer }): boolean {
  if (secret.startsWith("whpk_")) {
    const key = publicKeyOf(fromBase64(secret.slice("whpk_".length)));
    return key !== undefined && valuesOf(signatures, "v1a").some((value) => verify(null, content, key, value));
  }
  const key = sharedKey(secret);
  return key !== undefined && anyEqual(valuesOf(signatures, "v1"), [hmac(key, content)]);
}

const ED25519_BYTES = 32;
const EXPECTED: Readonly<Record<KeySide, string>> = {
  receiver: "'whsec_' and base64 of at least one byte, or 'whpk_' and base64 of 32 bytes",
  sender: "'whsec_' and base64 of at least one byte, or 'whsk_' and base64 of 32 or 64 bytes",
};

function checkSecret(secret: string, side: KeySide): SecretVerdict {
  const refusal: SecretVerdict = { ok: false, expected: EXPECTED[side] };
  const [, prefix] = /^(wh(?:pk|sk)_)/.exec(secret) ?? [];
  if (prefix === undefined) {
    const key = sharedKey(secret);
    return key && key.length > 0 ? { ok: true, keyBytes: key.length } : refusal;
  }
  if (prefix !== (side === "receiver" ? "whpk_" : "whsk_")) return refusal; // the other half of the pair
  const { length = 0 } = fromBase64(secret.slice(prefix.length)) ?? {};
  const isKey = length === ED25519_BYTES || (side === "sender" && length === 2 * ED25519_BYTES);
  return isKey ? { ok: true } : refusal;
}

const sharedKey = (secret: string): Uint8Array | undefined => fromBase64(secret.replace(/^whsec_/, ""));
const hmac = (key: Uint8Array, content: Buffer): Buffer => createHmac("sha256", key).update(content).digest();

/** @param secret `whsec_` or, for a key pair, `whsk_` and its 32 or 64 bytes */
function signatureOf(secret: string, content: Buffer): string {
  if (!secret.startsWith("whsk_")) {
    return `v1,${hmac(sharedKey(secret) ?? new Uint8Array(), content).toString("base64")}`;
  }
  const seed = (fromBase64(secret.slice("whsk_".length)) ?? new Uint8Array()).slice(0, 32);
  return `v1a,${sign(null, content, privateKeyOf(seed)).toString("base64")}`;
}

export const standardWebhooks = standardScheme("webhook");
export const svix = standardScheme("svix");
