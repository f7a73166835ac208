/** `auth` of a mapping: its senders authenticate by it, instead of by the hook token. */
import { Type } from "@sinclair/typebox";
import {
  changed,
  httpUrl,
  oneOfTexts,
  type Output,
  refined,
  type SchemaProblem,
  strictObject,
  trimmed,
} from "../../base/schema.ts";

const optional = Type.Optional;
const word = () => Type.String({ minLength: 1, maxLength: 256 });

/** A moment in UTC. */
export const moment = () =>
  refined(Type.String(), (given) =>
    /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z$/.test(given) && !Number.isNaN(Date.parse(given))
      ? undefined
      : "expected a moment in UTC such as 2026-12-31T23:59:59Z",
  );

/** A secret; `${NAME}` is already replaced by the environment variable. */
export const secret = trimmed();
/** A secret with an expiry, for the old one of two during a rotation. */
const expiringSecret = Type.Union([
  changed(secret, (value): { value: string; expiresAt?: string | undefined } => ({ value, expiresAt: undefined })),
  strictObject({ value: secret, expiresAt: optional(moment()) }),
]);
export const secrets = changed(
  Type.Union([expiringSecret, Type.Array(expiringSecret, { minItems: 1, maxItems: 8 })]),
  (given): { value: string; expiresAt?: string | undefined }[] => (Array.isArray(given) ? given : [given]),
);

/** Default: the scheme's own, mostly five minutes. */
const tolerance = optional(Type.Integer({ minimum: 1, maximum: 86_400 }));

/** The place of the sender's delivery id: a header, or a field of the body. */
const ids = { idHeader: optional(word()), idField: optional(word()) };

/** A signature as data: its place, its format, and the signed content. See `signatures/form.ts`. */
const form = {
  /** One header or several; some senders have one for each of two keys. */
  header: optional(
    Type.Union([word(), Type.Array(word(), { minItems: 1, maxItems: 4 })], { expected: "a text that is not empty" }),
  ),
  /** The path of a field in the body, instead of a header. */
  signatureField: optional(word()),
  /** The prefix of a signature. Values in the header with another prefix are skipped. */
  prefix: Type.String({ default: "" }),
  algorithm: oneOfTexts(["sha1", "sha256", "sha384", "sha512"], { default: "sha256" }),
  encoding: oneOfTexts(["hex", "base64", "base64url"], { default: "hex" }),
  /** The signed content: text with `{id}`, `{timestamp}`, `{body}`, `{url}`, `{method}`, `{form}`. */
  signedContent: Type.String({ default: "{body}" }),
  ...ids,
  timestampHeader: optional(word()),
  /** The prefix of the timestamp among the values of `header`, such as `t=`. */
  timestampPrefix: optional(word()),
  timestampField: optional(word()),
  timestampUnit: oneOfTexts(["s", "ms", "iso"], { default: "s" }),
  toleranceSeconds: tolerance,
  /** The URL that the sender signs, if a proxy hides it: scheme and host, and an optional path. */
  publicUrl: optional(httpUrl()),
};

/** Mutually exclusive settings. */
const ALTERNATIVES = [
  ["header", "signatureField"],
  ["timestampHeader", "timestampPrefix", "timestampField"],
  ["idHeader", "idField"],
] as const;

function formProblems(given: Readonly<Record<string, unknown>>): readonly SchemaProblem[] {
  const problems: SchemaProblem[] = ALTERNATIVES.flatMap((keys) => {
    const set = keys.filter((key) => given[key] !== undefined);
    return set.slice(1).map((key) => ({ path: [key], message: `either this or ${set[0]}, not both` }));
  });
  const { header, signatureField, timestampPrefix } = given;
  if (header === undefined && signatureField === undefined) {
    problems.push({ path: ["header"], message: "required: expected a text that is not empty" });
  }
  if (timestampPrefix !== undefined && header === undefined) {
    problems.push({ path: ["timestampPrefix"], message: "is for values of a header, and header is not set" });
  }
  return problems;
}

export const signature = Type.Union([
  strictObject({
    scheme: oneOfTexts([
      "standard-webhooks",
      "svix",
      "stripe",
      "slack",
      "linear",
      "discord",
      "sentry",
      "mux",
      "workos",
      "paddle",
      "mailgun",
      "sendgrid",
      "telnyx",
    ]),
    secrets,
    toleranceSeconds: tolerance,
  }),
  strictObject({
    scheme: oneOfTexts(["github", "gitea", "gitlab", "shopify", "teams", "pagerduty", "telegram", "basic"]),
    secrets,
  }),
  strictObject({ scheme: Type.Literal("twilio"), secrets, publicUrl: optional(httpUrl()) }),
  /** A header that holds the secret itself. */
  strictObject({
    scheme: Type.Literal("token"),
    secrets,
    header: word(),
    prefix: Type.String({ default: "" }),
    ...ids,
  }),
  refined(
    strictObject({
      scheme: Type.Literal("hmac"),
      secrets,
      /** Encoding of the secrets; default: text. */
      keyEncoding: optional(oneOfTexts(["text", "hex", "base64"])),
      ...form,
    }),
    formProblems,
  ),
  /** ECDSA, Ed25519 or RSA, depending on the key. */
  refined(strictObject({ scheme: Type.Literal("public-key"), secrets, ...form }), formProblems),
]);
export type SignatureConfig = Output<typeof signature>;
