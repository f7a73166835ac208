/** Schemes that sign with a shared secret: they differ in what is signed and in how the signature is written. */
import { createHmac } from "node:crypto";
import {
  anyEqual,
  refused,
  SIGNATURES_MAX,
  textSecret,
  timestampProblem,
  type SecretSettings,
  type SignatureScheme,
  type SignedRequest,
} from "./scheme.ts";

export const TOLERANCE_SECONDS = 300;

interface Proof {
  readonly signatures: readonly (Uint8Array | undefined)[];
  readonly timestamp?: string | undefined;
  readonly id?: string | undefined;
}

/** What is signed: pieces that follow each other without anything between them. */
type Content = readonly (string | Uint8Array)[];

export interface HmacSpec<Settings> {
  readonly headers: readonly string[];
  /** The proof that a request carries; undefined where its header is missing or malformed. */
  readonly read: (request: SignedRequest, settings: Settings) => Proof | undefined;
  readonly content: (
    request: SignedRequest,
    proof: { readonly timestamp: string; readonly id: string },
    settings: Settings,
  ) => Content;
  /** The headers of a signature, for senders. */
  readonly write: (
    signature: Buffer,
    proof: { readonly timestamp: string; readonly id: string },
    settings: Settings,
  ) => Record<string, string>;
  readonly algorithm?: (settings: Settings) => string;
  /** Milliseconds of the timestamp's unit; undefined: the scheme has no timestamp. */
  readonly timestampUnitMs?: (settings: Settings) => number | undefined;
  /** Where the settings leave it open; 300 where the scheme does too. */
  readonly toleranceSeconds?: number;
  readonly deliveryId?: (request: SignedRequest, settings: Settings) => string | undefined;
}

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

export function hmacScheme<Settings extends SecretSettings>(spec: HmacSpec<Settings>): SignatureScheme<Settings> {
  const { algorithm = () => "sha256", timestampUnitMs = () => undefined } = spec;
  const hmac = (settings: Settings, secret: Uint8Array, content: Content): Buffer => {
    const hash = createHmac(algorithm(settings), secret);
    for (const piece of content) hash.update(piece);
    return hash.digest();
  };
  return {
    checkSecret: textSecret,
    credentialHeaders: () => spec.headers,
    verify(settings, request) {
      const proof = spec.read(request, settings);
      if (!proof) return refused("the signature header is missing or malformed");
      const { timestamp = "", id = "" } = proof;
      const unitMs = timestampUnitMs(settings);
      if (unitMs !== undefined) {
        const { toleranceSeconds = spec.toleranceSeconds ?? TOLERANCE_SECONDS } = settings;
        const problem = timestampProblem(proof.timestamp, { nowMs: request.nowMs, toleranceSeconds, unitMs });
        if (problem) return refused(problem);
      }
      const given = proof.signatures.filter((signature) => signature !== undefined).slice(0, SIGNATURES_MAX);
      const content = spec.content(request, { timestamp, id }, settings);
      const right = settings.secrets.map((secret) => hmac(settings, utf8(secret), content));
      if (!anyEqual(given, right)) return refused("no signature matches");
      const deliveryId = spec.deliveryId?.(request, settings);
      return { ok: true, ...(deliveryId ? { deliveryId } : {}) };
    },
    sign(settings, request) {
      const unitMs = timestampUnitMs(settings);
      const timestamp = unitMs === undefined ? "" : String(Math.floor(request.nowMs / unitMs));
      const secret = utf8(settings.secrets[0] ?? "");
      const proof = { timestamp, id: request.id };
      return spec.write(hmac(settings, secret, spec.content(request, proof, settings)), proof, settings);
    },
  };
}
