/** Signature schemes by name. */
import { AppError } from "../../../../base/index.ts";
import type { SignatureConfig } from "../../signature-config.ts";
import { FORM_DEFAULT, type Place, type SignatureForm } from "./form.ts";
import { gitlab } from "./gitlab.ts";
import { keyPair, type KeyKind, sharedKey } from "./keys.ts";
import {
  refused,
  type SecretSettings,
  type SecretVerdict,
  type SignatureScheme,
  type SignedRequest,
  type Verdict,
} from "./scheme.ts";
import { signedScheme } from "./signed.ts";
import { standardWebhooks, svix } from "./standard-webhooks.ts";
import { basic, token } from "./token.ts";
import { KEY_PAIR_FORMS, SHARED_KEY_FORMS } from "./vendors.ts";

export type { SignedRequest, Verdict } from "./scheme.ts";

type Scheme = SignatureConfig["scheme"];

type OwnForm = Omit<Extract<SignatureConfig, { scheme: "hmac" | "public-key" }>, "secrets" | "scheme"> & SecretSettings;

/** Turns headers and fields of the configuration into a place. */
function placeOf(header: string | readonly string[] | undefined, field: string | undefined): Place | undefined {
  if (header === undefined) return field === undefined ? undefined : { fields: [field] };
  return { headers: [header].flat().map((name) => name.toLowerCase()) };
}

/** Turns a configured signature into a form. */
function ownForm(own: OwnForm & { readonly keyEncoding?: SignatureForm["keyEncoding"] | undefined }): SignatureForm {
  const { timestampPrefix, toleranceSeconds, keyEncoding = FORM_DEFAULT.keyEncoding } = own;
  return {
    signature: placeOf(own.header, own.signatureField) ?? {},
    prefix: own.prefix,
    encoding: own.encoding,
    keyEncoding,
    algorithm: own.algorithm,
    signedContent: own.signedContent,
    timestamp:
      timestampPrefix === undefined ? placeOf(own.timestampHeader, own.timestampField) : { prefix: timestampPrefix },
    timestampUnit: own.timestampUnit,
    toleranceSeconds: toleranceSeconds ?? FORM_DEFAULT.toleranceSeconds,
    id: placeOf(own.idHeader, own.idField),
    publicUrl: own.publicUrl,
  };
}

interface VendorSettings extends SecretSettings {
  readonly publicUrl?: string;
}

/** A vendor's form with an operator's changes. */
const vendorSchemes = <Name extends string>(keys: KeyKind, forms: Readonly<Record<Name, SignatureForm>>) =>
  Object.fromEntries(
    Object.entries<SignatureForm>(forms).map(([name, form]) => [
      name,
      signedScheme<VendorSettings>(keys, ({ toleranceSeconds = form.toleranceSeconds, publicUrl }) => ({
        ...form,
        toleranceSeconds,
        publicUrl,
      })),
    ]),
  ) as Record<Name, SignatureScheme<VendorSettings>>;

const TELEGRAM = { header: "x-telegram-bot-api-secret-token", prefix: "", idField: "update_id" };

export const signatureSchemes: Readonly<Record<Scheme, SignatureScheme<any>>> = {
  "standard-webhooks": standardWebhooks,
  svix,
  gitlab,
  ...vendorSchemes(sharedKey, SHARED_KEY_FORMS),
  ...vendorSchemes(keyPair, KEY_PAIR_FORMS),
  telegram: {
    checkSecret: (secret, side) => token.checkSecret(secret, side, { ...TELEGRAM, secrets: [] }),
    credentialHeaders: () => [TELEGRAM.header],
    verify: (settings, request) => token.verify({ ...settings, ...TELEGRAM }, request),
    sign: (settings, request) => token.sign({ ...settings, ...TELEGRAM }, request),
  },
  token,
  basic,
  hmac: signedScheme(sharedKey, ownForm),
  "public-key": signedScheme(keyPair, ownForm),
};

/**
 * Schemes that sign only the body, for senders whose bodies hold ids and times: a replayed request with another id is
 * recognised by its body. With `hmac`, equal bodies may be two different messages.
 */
const UNIQUE_BODIES: readonly Scheme[] = ["github", "gitea", "shopify", "sentry", "twilio"];
export const hasUniqueBodies = (scheme: Scheme): boolean => UNIQUE_BODIES.includes(scheme);

/** True if the sender knows a secret of this mapping. All refusals get the same answer: log the reason. */
export function verifySignature(config: SignatureConfig, request: SignedRequest): Verdict {
  const settings = currentSettings(config, request.nowMs);
  if (settings.secrets.length === 0) return refused("every secret has expired");
  return signatureSchemes[config.scheme].verify(settings, request);
}

/** The headers that a sender with the first secret would send. Throws `bad_request` for a scheme without signature. */
export function signRequest(
  config: SignatureConfig,
  request: SignedRequest & { readonly id: string },
): Record<string, string> {
  const settings = currentSettings(config, request.nowMs);
  const scheme = signatureSchemes[config.scheme];
  const verdict = scheme.checkSecret(settings.secrets[0] ?? "", "sender", settings);
  if (!verdict.ok) throw new AppError("bad_request", `cannot sign with this secret: expected ${verdict.expected}`);
  return scheme.sign(settings, request);
}

/** Headers, by lower-case name, that templates and transforms must not see. */
export function credentialHeaders(config: SignatureConfig): readonly string[] {
  return signatureSchemes[config.scheme].credentialHeaders(currentSettings(config, 0));
}

/** Judges a secret for the scheme that verifies with it. */
export const checkSecret = (config: SignatureConfig, secret: string): SecretVerdict =>
  signatureSchemes[config.scheme].checkSecret(secret, "receiver", currentSettings(config, 0));

/** Judges a secret for signing callbacks. */
export const checkCallbackSecret = (secret: string): SecretVerdict =>
  standardWebhooks.checkSecret(secret, "sender", { secrets: [secret] });

/** Drops expired secrets. */
function currentSettings(config: SignatureConfig, nowMs: number) {
  const current = config.secrets.filter(({ expiresAt }) => !expiresAt || Date.parse(expiresAt) > nowMs);
  return { ...config, secrets: current.map(({ value }) => value) };
}
