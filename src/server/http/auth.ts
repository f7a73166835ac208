/**
 * API keys, for servers on public addresses. Off unless keys are configured. A key may have a name, `name:key`, which
 * the log shows.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { isLlamaPath } from "./errors.ts";

interface Admission {
  readonly passes: boolean;
  /** Name of the request's key. */
  readonly keyName?: string;
  /** Identifies the owner of the key; the same for keys of one name. Without keys there is no owner. */
  readonly owner?: string;
}

/** The routes that require a key, besides llama-server's: probes, the documentation and preflights do not. */
const KEPT = /^\/(api|v1|mcp|metrics)(\/|$)/i;

export function makeAuth(keys: readonly string[]): (request: Request, path: string) => Admission {
  const known = keys.map(parseKey);
  return (request, path) => {
    if (known.length === 0 || !(KEPT.test(path) || isLlamaPath(path))) return { passes: true };
    const bearer = /^Bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
    const given = bearer ?? request.headers.get("x-api-key") ?? undefined; // the header of Anthropic's clients
    if (given === undefined) return { passes: false };
    const wanted = digest(given);
    // compares every key, in equal lengths, so that the timing reveals nothing
    const [match] = known.filter((key) => timingSafeEqual(key.digest, wanted));
    return match ? { passes: true, keyName: match.name, owner: match.owner } : { passes: false };
  };
}

/** A key without a name is named by its position: `key1`. */
function parseKey(text: string, index: number): { name: string; owner: string; digest: Buffer } {
  const [, name, key = text] = /^([\w.-]{1,64}):(.+)$/.exec(text) ?? [];
  const hash = digest(key);
  // a position would pass to another key when the list changes
  const owner = name === undefined ? `key ${hash.toString("hex")}` : `name ${name}`;
  return { name: name ?? `key${index + 1}`, owner, digest: hash };
}

function digest(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}
