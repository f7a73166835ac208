/**
 * API keys, for servers that are not on a loopback address. Off unless keys are configured. A key may have a name,
 * `name:key`, by which the log tells who called.
 */
import { createHash, timingSafeEqual } from "node:crypto";

interface Admission {
  readonly passes: boolean;
  /** Of the key that the request came with. */
  readonly keyName?: string;
}

/** Only `/api`, `/v1` and `/metrics` ask for a key: probes, the documentation and preflights do not. */
export function makeAuth(keys: readonly string[]): (request: Request, path: string) => Admission {
  const known = keys.map(parseKey);
  return (request, path) => {
    if (known.length === 0 || !/^\/(api|v1|metrics)(\/|$)/i.test(path)) return { passes: true };
    const bearer = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
    const given = bearer ?? request.headers.get("x-api-key") ?? undefined; // as clients of the Anthropic API send it
    if (given === undefined) return { passes: false };
    const wanted = digest(given);
    // every key is compared, in equal lengths: the time tells nothing
    const [match] = known.filter((key) => timingSafeEqual(key.digest, wanted));
    return match ? { passes: true, keyName: match.name } : { passes: false };
  };
}

/** A key without a name is known by its place: `key1`. */
function parseKey(text: string, index: number): { name: string; digest: Buffer } {
  const [, name = `key${index + 1}`, key = text] = /^([\w.-]{1,64}):(.+)$/.exec(text) ?? [];
  return { name, digest: digest(key) };
}

function digest(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}
