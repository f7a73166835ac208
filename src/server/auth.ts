/**
 * API keys, for servers that are not on a loopback address. Off unless keys are configured.
 */
import { createHash, timingSafeEqual } from "node:crypto";

/** True where a request may pass. Only `/api` and `/v1` ask for a key: probes of `/` and preflights do not. */
export function makeAuth(keys: readonly string[]): (request: Request, path: string) => boolean {
  const digests = keys.map(digest);
  return (request, path) => {
    if (digests.length === 0 || !/^\/(api|v1)(\/|$)/i.test(path)) return true;
    const bearer = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
    const given = bearer ?? request.headers.get("x-api-key") ?? undefined; // as clients of the Anthropic API send it
    if (given === undefined) return false;
    const wanted = digest(given);
    return digests.some((known) => timingSafeEqual(known, wanted)); // equal lengths, and nothing to learn from the time
  };
}

function digest(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}
