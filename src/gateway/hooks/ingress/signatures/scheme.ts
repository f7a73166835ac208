/**
 * The interface of a signature scheme: how a sender proves that it wrote the exact bytes of a body. One file per
 * scheme. All failures look the same to callers; the reason is for the log.
 */
import { createHash, timingSafeEqual } from "node:crypto";

/** A request as a sender signed it. */
export interface SignedRequest {
  readonly rawBody: Uint8Array;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly url: string;
  readonly method: string;
  readonly nowMs: number;
}

export type Verdict =
  | {
      readonly ok: true;
      /** The sender's own id of this delivery; repeats have the same. */
      readonly deliveryId?: string;
    }
  | { readonly ok: false; readonly reason: string };

/** Settings about secrets that every scheme has. */
export interface SecretSettings {
  /** Secrets that have not expired; any of them is valid. */
  readonly secrets: readonly string[];
  /** Largest distance of a timestamp from now, in the past or the future. */
  readonly toleranceSeconds?: number;
}

/** A scheme's verdict on a configured secret. */
export type SecretVerdict =
  | {
      readonly ok: true;
      /** Size of the decoded key; undefined for a public key, which is not a secret. */
      readonly keyBytes?: number;
    }
  | { readonly ok: false; readonly expected: string };

/** The use of a key: we verify with it (`receiver`), or sign with it (`sender`). */
export type KeySide = "receiver" | "sender";

export interface SignatureScheme<Settings extends SecretSettings = SecretSettings> {
  /** Checks a secret when the configuration is read. */
  checkSecret(secret: string, side: KeySide, settings: Settings): SecretVerdict;
  /** Headers with credentials, by lower-case name: after authentication no code may read them. */
  credentialHeaders(settings: Settings): readonly string[];
  verify(settings: Settings, request: SignedRequest): Verdict;
  /** The headers that a sender with the first secret would send. Throws `bad_request` if headers are not enough. */
  sign(settings: Settings, request: SignedRequest & { readonly id: string }): Record<string, string>;
}

export const refused = (reason: string): Verdict => ({ ok: false, reason });

/** A secret that is used verbatim. */
export const textSecret = (secret: string): SecretVerdict => ({ ok: true, keyBytes: Buffer.byteLength(secret) });

/** True if any signature equals any of the right ones; each pair is compared in constant time. */
export function anyEqual(given: readonly Uint8Array[], right: readonly Uint8Array[]): boolean {
  let found = false;
  for (const signature of given) {
    for (const wanted of right) {
      const isEqual = signature.length === wanted.length && timingSafeEqual(signature, wanted);
      found = isEqual || found;
    }
  }
  return found;
}

const digest = (text: string): Uint8Array => createHash("sha256").update(text).digest();

/** True if a text is one of the secrets. Digests have equal lengths: the comparison does not reveal the secret's. */
export const isOneOf = (text: string, secrets: readonly string[]): boolean =>
  anyEqual([digest(text)], secrets.map(digest));

/** Maximum number of signatures in one header: enough for rotation, few enough to bound the work. */
export const SIGNATURES_MAX = 16;

/** Decodes hexadecimal digits; undefined for anything else. */
export function fromHex(text: string): Uint8Array | undefined {
  return text.length % 2 === 0 && /^[0-9a-f]+$/i.test(text) ? Buffer.from(text, "hex") : undefined;
}

/** Decodes base64 in either alphabet; undefined for anything else. */
export function fromBase64(text: string): Uint8Array | undefined {
  const [, digits] = /^([A-Za-z0-9+/_-]+)={0,2}$/.exec(text) ?? [];
  return digits !== undefined && digits.length % 4 !== 1 ? Buffer.from(digits, "base64") : undefined;
}

/**
 * The reason why a timestamp is invalid; undefined: it is valid.
 * @param unitMs milliseconds of its unit
 */
export function timestampProblem(
  text: string | undefined,
  { nowMs, toleranceSeconds, unitMs }: { nowMs: number; toleranceSeconds: number; unitMs: number },
): string | undefined {
  if (text === undefined || !/^\d{1,16}$/.test(text)) return "the timestamp is missing or not a number";
  const ageMs = nowMs - Number(text) * unitMs;
  if (ageMs > toleranceSeconds * 1000) return "the timestamp is too old";
  if (ageMs < -toleranceSeconds * 1000) return "the timestamp is in the future";
  return undefined;
}
