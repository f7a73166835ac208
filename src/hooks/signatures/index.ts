/** Signature schemes by name. */
import { AppError } from "../../base/errors.ts";
import type { SignatureConfig } from "../config.ts";
import { discord } from "./discord.ts";
import { generic, type GenericSettings } from "./generic.ts";
import { gitea } from "./gitea.ts";
import { github } from "./github.ts";
import { gitlab } from "./gitlab.ts";
import { linear } from "./linear.ts";
import { refused, type SecretVerdict, type SignatureScheme, type SignedRequest, type Verdict } from "./scheme.ts";
import { sentry } from "./sentry.ts";
import { shopify } from "./shopify.ts";
import { slack } from "./slack.ts";
import { standardWebhooks, svix } from "./standard-webhooks.ts";
import { stripe } from "./stripe.ts";

export type { SignedRequest, Verdict } from "./scheme.ts";

type Scheme = SignatureConfig["scheme"];

export const signatureSchemes: Readonly<Record<Scheme, SignatureScheme<any>>> = {
  "standard-webhooks": standardWebhooks,
  svix,
  github,
  gitea,
  gitlab,
  stripe,
  slack,
  shopify,
  linear,
  discord,
  sentry,
  hmac: {
    ...generic,
    credentialHeaders: ({ header }: GenericSettings) => [header.toLowerCase()],
  },
};

/**
 * Schemes that sign the body and nothing else, of senders whose bodies hold ids and times: a captured request that
 * comes again under another id is told by its body. The bodies of `hmac` may be equal and mean two things.
 */
const UNIQUE_BODIES: readonly Scheme[] = ["github", "gitea", "shopify", "sentry"];
export const hasUniqueBodies = (scheme: Scheme): boolean => UNIQUE_BODIES.includes(scheme);

/** Whether the sender knows a secret of this mapping. Every refusal looks alike from outside: log its reason. */
export function verifySignature(config: SignatureConfig, request: SignedRequest): Verdict {
  const settings = currentSettings(config, request.nowMs);
  if (settings.secrets.length === 0) return refused("every secret has expired");
  return signatureSchemes[config.scheme].verify(settings, request);
}

/** The headers that a sender with the first secret would send. Throws `bad_request` for one that signs nothing. */
export function signRequest(
  config: SignatureConfig,
  request: SignedRequest & { readonly id: string },
): Record<string, string> {
  const settings = currentSettings(config, request.nowMs);
  const scheme = signatureSchemes[config.scheme];
  const verdict = scheme.checkSecret(settings.secrets[0] ?? "", "sender");
  if (!verdict.ok) throw new AppError("bad_request", `cannot sign with this secret: expected ${verdict.expected}`);
  return scheme.sign(settings, request);
}

/** Headers, by lower-case name, that templates and transforms must not see. */
export function credentialHeaders(config: SignatureConfig): readonly string[] {
  return signatureSchemes[config.scheme].credentialHeaders(currentSettings(config, 0));
}

/** What a secret is to the scheme that verifies with it. */
export const checkSecret = (scheme: Scheme, secret: string): SecretVerdict =>
  signatureSchemes[scheme].checkSecret(secret, "receiver");

/** What a secret is that we sign callbacks with. */
export const checkCallbackSecret = (secret: string): SecretVerdict => standardWebhooks.checkSecret(secret, "sender");

/** Secrets that still count. */
function currentSettings(config: SignatureConfig, nowMs: number) {
  const current = config.secrets.filter(({ expiresAt }) => !expiresAt || Date.parse(expiresAt) > nowMs);
  return { ...config, secrets: current.map(({ value }) => value) };
}
