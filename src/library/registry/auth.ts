/**
 * Bearer tokens: a registry that answers 401 names its token service (RFC 6750 challenge, as in the distribution token
 * specification); we send it a request signed by our key.
 */
import { randomBytes } from "node:crypto";
import { AppError } from "../../base/index.ts";
import type { RegistryKey } from "./key.ts";

const CHALLENGE_CHARS_MAX = 4096;
const TOKEN_CHARS_MAX = 32 * 1024;

interface Challenge {
  readonly realm: URL;
  readonly service: string | undefined;
  readonly scopes: readonly string[];
}

/**
 * @param header WWW-Authenticate
 * @param base the registry: only its own token service is used, because the signature identifies us. Throws `registry`.
 */
export function parseChallenge(header: string | null, base: URL): Challenge {
  const fields = challengesIn(header).get("bearer");
  if (!fields) throw new AppError("registry", "unauthorized: access denied");
  const realm = URL.parse(fields.get("realm") ?? "");
  const shown = JSON.stringify((header ?? "").slice(0, 200));
  if (!realm) throw new AppError("registry", `${base.host}: expected a realm in ${shown}`);
  if (realm.host !== base.host) {
    throw new AppError("registry", `realm host "${realm.host}" does not match original host "${base.host}"`);
  }
  if (realm.protocol !== base.protocol) {
    throw new AppError("registry", `realm protocol "${realm.protocol}" does not match original "${base.protocol}"`);
  }
  const scopes = (fields.get("scope") ?? "").split(" ").filter((scope) => scope !== "");
  return { realm, service: fields.get("service"), scopes };
}

/** Returns whether a user and a password are required instead of a token. @param header WWW-Authenticate */
export function wantsLogin(header: string | null): boolean {
  const challenges = challengesIn(header);
  return challenges.has("basic") && !challenges.get("bearer")?.has("realm");
}

/** The fields of each challenge by its scheme, in lower case except for values: a header may hold several. */
function challengesIn(header: string | null): Map<string, Map<string, string>> {
  const challenges = new Map<string, Map<string, string>>();
  let fields = new Map<string, string>();
  const pieces = /([\w-]+)\s*=\s*(?:"([^"]*)"|([^\s,"]+))|([A-Za-z][\w-]*)/g;
  for (const [, key, quoted, bare, scheme] of (header ?? "").slice(0, CHALLENGE_CHARS_MAX).matchAll(pieces)) {
    if (key !== undefined) fields.set(key.toLowerCase(), quoted ?? bare ?? "");
    else challenges.set((scheme ?? "").toLowerCase(), (fields = new Map()));
  }
  return challenges;
}

/** The request that asks for a token, and the header that signs it. */
export function tokenRequest(
  { realm, service, scopes }: Challenge,
  { key, nowMs }: { key: RegistryKey; nowMs: number },
): { url: URL; authorization: string } {
  const url = new URL(realm);
  if (service !== undefined) url.searchParams.set("service", service);
  for (const scope of scopes) url.searchParams.append("scope", scope);
  url.searchParams.set("ts", String(Math.floor(nowMs / 1000)));
  url.searchParams.set("nonce", randomBytes(16).toString("base64url"));
  const emptyBody = new Bun.CryptoHasher("sha256").update("").digest("hex");
  const signed = `GET,${url.href},${Buffer.from(emptyBody).toString("base64")}`;
  return { url, authorization: `${key.publicKey}:${key.sign(signed)}` };
}

/** Throws `registry` if the answer has no token that is valid in a header. */
export function parseToken(text: string, host: string): string {
  const found = tokenIn(text);
  if (typeof found !== "string" || !/^[\x21-\x7e]+$/.test(found) || found.length > TOKEN_CHARS_MAX) {
    throw new AppError("registry", `${host}: expected a token, got ${text.length} characters without one`);
  }
  return found;
}

function tokenIn(text: string): unknown {
  try {
    const { token, access_token: accessToken } = JSON.parse(text) as Record<string, unknown>; // null throws, too
    return token ?? accessToken;
  } catch {
    return undefined; // the caller reports the expected form
  }
}
