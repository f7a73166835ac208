/**
 * Where a request comes from: the peer of the socket, or the client that trusted proxies say they speak for. Only the
 * part of X-Forwarded-For that those proxies wrote counts; the rest is whatever a client chose to send.
 */
import { isIP } from "node:net";
import { groupsOf, isWithin, type Networks, parseAddress } from "../../../base/system.ts";

/** The peer of a Unix socket: only a proxy of this machine may connect there. */
export const UNIX_PEER = "unix";

/** Hops that are looked at: more proxies than anyone has in a row. */
const HOPS_MAX = 32;

/** The client's address in its one spelling; `unknown` where the socket has none and no proxy names it. */
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

/**
 * The address that a sender wrote: behind a proxy that is trusted, with the scheme and the host that it says it was
 * asked by. Senders that sign the address sign that one.
 */
export function publicUrl(parts: { url: URL; headers: Headers; peer: string | undefined; trusted: Networks }): string {
  const { url, headers, peer, trusted } = parts;
  const isTrusted = peer === UNIX_PEER || isWithin(trusted, parseAddress(peer ?? "") ?? "");
  if (!isTrusted) return url.href;
  const scheme = firstOf(headers.get("x-forwarded-proto"))?.toLowerCase();
  const host = firstOf(headers.get("x-forwarded-host")) ?? url.host;
  const origin = `${scheme === "https" ? scheme : url.protocol.slice(0, -1)}://${host}`;
  return URL.canParse(origin) ? new URL(origin).origin + url.pathname + url.search : url.href;
}

/** Of proxies in a row the one that the client asked says it first. */
const firstOf = (values: string | null): string | undefined => values?.split(",")[0]?.trim() || undefined;

/** What failures are counted by: an IPv6 client has a whole /64 to itself. */
export function failureKey(address: string): string {
  if (isIP(address) !== 6) return address;
  return `${groupsOf(address).slice(0, 4).join(":")}::/64`;
}
