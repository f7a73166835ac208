/**
 * What a signature scheme is: how a sender proves that it wrote the very bytes of a body. One file per scheme. Whatever
 * is wrong with a proof, callers hear the same: the reason is for the log.
 */
import { timingSafeEqual } from "node:crypto";

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
      /** The sender's own id of this delivery: a repeat has the same. */
      readonly deliveryId?: string;
    }
  | { readonly ok: false; readonly reason: string };

/** What a scheme needs of its settings, beside its own. */
export interface SecretSettings {
  /** Any of them will do; those that have expired are left out already. */
  readonly secrets: readonly string[];
  /** How far a timestamp may lie in the past or the future. */
  readonly toleranceSeconds?: number;
}

/** What a secret of the configuration is to a scheme. */
export type SecretVerdict =
  | {
      readonly ok: true;
      /** Of the decoded key; undefined for a public key, which is no secret. */
      readonly keyBytes?: number;
    }
  | { readonly ok: false; readonly expected: string };

/** Whose key a secret is: ours to verify with, or ours to sign with. */
export type KeySide = "receiver" | "sender";

export interface SignatureScheme<Settings extends SecretSettings = SecretSettings> {
  /** Looks at a secret when the configuration is read. */
  checkSecret(secret: string, side: KeySide, settings: Settings): SecretVerdict;
  /** Headers that prove or identify, by lower-case name: nothing behind the door may read them. */
  credentialHeaders(settings: Settings): readonly string[];
  verify(settings: Settings, request: SignedRequest): Verdict;
  /** The headers that a sender with the first secret would send. Throws `bad_request` where headers are not enough. */
  sign(settings: Settings, request: SignedRequest & { readonly id: string }): Record<string, string>;
}

export const refused = (reason: string): Verdict => ({ ok: false, reason });

/** A secret that is used as it is written. */
export const textSecret = (secret: string): SecretVerdict => ({ ok: true, keyBytes: Buffer.byteLength(secret) });

/** Whether any of some signatures is any of those that would be right; each pair is compared in constant time. */
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

/** Signatures that one header may carry: enough for rotation, too few to make us compute. */
export const SIGNATURES_MAX = 16;

/** Bytes of hexadecimal digits; undefined for anything else. */
export function fromHex(text: string): Uint8Array | undefined {
  return text.length % 2 === 0 && /^[0-9a-f]+$/i.test(text) ? Buffer.from(text, "hex") : undefined;
}

/** Bytes of base64 in either alphabet; undefined for anything else. */
export function fromBase64(text: string): Uint8Array | undefined {
  const [, digits] = /^([A-Za-z0-9+/_-]+)={0,2}$/.exec(text) ?? [];
  return digits !== undefined && digits.length % 4 !== 1 ? Buffer.from(digits, "base64") : undefined;
}

/** Why a timestamp does not count; undefined where it does. @param unitMs milliseconds of its unit */
export function timestampProblem(
  text: string | undefined,
  { nowMs, toleranceSeconds, unitMs }: { nowMs: number; toleranceSeconds: number; unitMs: number },
): string | undefined {
  if (text === undefined || !/^\d{1,16}$/.test(text)) return "the timestamp is missing or no number";
  const ageMs = nowMs - Number(text) * unitMs;
  if (ageMs > toleranceSeconds * 1000) return "the timestamp is too old";
  if (ageMs < -toleranceSeconds * 1000) return "the timestamp is in the future";
  return undefined;
}
