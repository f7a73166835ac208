/**
 * `fetch` for addresses that come from requests: only to public addresses. The connection uses the addresses that were
 * checked, so that a name cannot point elsewhere in between. Redirects are not followed.
 */
import { lookup } from "node:dns";
import { request as requestOf } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { Readable } from "node:stream";
import { isPublicAddress } from "../../base/system.ts";

const REFUSED = "it is not at a public address";

/** Throws if the address is not `https:` or not public. The body of `init` is a text, if any. */
export function publicFetch(address: string | URL, init: RequestInit): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  const url = new URL(address);
  const bare = url.hostname.replace(/^\[|\]$/g, "");
  if (url.protocol !== "https:") throw new Error("its address is not https");
  if (isIP(bare) !== 0 && !isPublicAddress(bare)) throw new Error(REFUSED);
  const { method = "GET", headers, signal, body } = init;
  const options = {
    method,
    headers: Object.fromEntries(new Headers(headers)),
    agent: false, // a pooled connection may have been opened when the name pointed elsewhere
    lookup: publicLookup,
    ...(signal ? { signal } : {}),
  };
  const request = requestOf(url, options, (response) => {
    const { statusCode: status = 502, headers: given } = response;
    const pairs = Object.entries(given).flatMap(([name, value]) =>
      [value ?? []].flat().map((each): [string, string] => [name, each]),
    );
    const isEmpty = [204, 205, 304].includes(status);
    if (isEmpty) response.resume();
    resolve(new Response(isEmpty ? null : (Readable.toWeb(response) as ReadableStream), { status, headers: pairs }));
  });
  request.on("error", reject);
  request.end(typeof body === "string" ? body : undefined);
  return promise;
}

/** Every address of the name must be public, because any of them may be used. */
const publicLookup: LookupFunction = (host, { all }, done) =>
  lookup(host, { all: true }, (error, found = []) => {
    const [first] = found;
    if (error || !first) return done(error ?? new Error("its name has no address"), []);
    if (!found.every(({ address }) => isPublicAddress(address))) return done(new Error(REFUSED), []);
    return all ? done(null, found) : done(null, first.address, first.family);
  });
