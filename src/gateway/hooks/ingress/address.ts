/**
 * The origin of a request: the peer of the socket, or the client named by trusted proxies. Only the part of
 * X-Forwarded-For that those proxies wrote counts; a client can forge the rest.
 */
import { isIP } from "node:net";
import { groupsOf, isWithin, type Networks, parseAddress } from "../../../base/system.ts";

/** The peer of a Unix socket: only a proxy of this machine may connect there. */
export const UNIX_PEER = "unix";

/** Maximum number of hops that are read: more than any chain of proxies. */
const HOPS_MAX = 32;

/** The client's address in canonical form; `unknown` if the socket has none and no proxy names it. */
export function clientAddress(parts: {
  peer: string | undefined;
  forwardedFor: string | null;
  trusted: Networks;
}): string {
  const hops = (parts.forwardedFor ?? "").split(",").slice(-HOPS_MAX);
  let address = parseAddress((parts.peer === UNIX_PEER ? hops.pop() : parts.peer) ?? "");
  if (address === undefined) return "unknown";
  while (hops.length > 0 && isWithin(parts.trusted, address)) {
    const next = parseAddress(hops.pop() ?? "");
    if (next === undefined) break;
    address = next;
  }
  return address;
}

/** The URL as the sender wrote it: a trusted proxy names scheme and host. Senders that sign the URL sign this one. */
export function publicUrl(parts: { url: URL; headers: Headers; peer: string | undefined; trusted: Networks }): string {
  const { url, headers, peer, trusted } = parts;
  const isTrusted = peer === UNIX_PEER || isWithin(trusted, parseAddress(peer ?? "") ?? "");
  if (!isTrusted) return url.href;
  const scheme = firstOf(headers.get("x-forwarded-proto"))?.toLowerCase();
  const host = firstOf(headers.get("x-forwarded-host")) ?? url.host;
  const origin = `${scheme === "https" ? scheme : url.protocol.slice(0, -1)}://${host}`;
  return URL.canParse(origin) ? new URL(origin).origin + url.pathname + url.search : url.href;
}

/** The first value comes from the proxy that the client reached. */
const firstOf = (values: string | null): string | undefined => values?.split(",")[0]?.trim() || undefined;

/** The key for counting failures: an IPv6 client owns a whole /64. */
export function failureKey(address: string): string {
  if (isIP(address) !== 6) return address;
  return `${groupsOf(address).slice(0, 4).join(":")}::/64`;
}
