/**
 * Where a request comes from: the peer of the socket, or the client that trusted proxies say they speak for. Only the
 * part of X-Forwarded-For that those proxies wrote counts; the rest is whatever a client chose to send.
 */
import { BlockList, isIP, isIPv4 } from "node:net";

/** Addresses and CIDR ranges. */
export interface Networks {
  readonly ipv4: BlockList;
  readonly ipv6: BlockList;
}

/** The peer of a Unix socket: only a proxy of this machine may connect there. */
export const UNIX_PEER = "unix";

/** Hops that are looked at: more proxies than anyone has in a row. */
const HOPS_MAX = 32;

/** Whether a text is an address or a CIDR range. */
export function isNetwork(text: string): boolean {
  const [address = "", bits, rest] = text.split("/");
  const family = isIP(address);
  if (family === 0 || rest !== undefined) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

/** A list each: node takes an IPv4 address for the IPv6 one that maps it. Leaves out what `isNetwork` refuses. */
export function parseNetworks(texts: readonly string[]): Networks {
  const networks: Networks = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const text of texts.filter(isNetwork)) {
    const [address = "", bits] = text.split("/");
    const family = isIPv4(address) ? "ipv4" : "ipv6";
    if (bits === undefined) networks[family].addAddress(address, family);
    else networks[family].addSubnet(address, Number(bits), family);
  }
  return networks;
}

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

/** @param address in one of its spellings, without brackets or zone */
export const isWithin = ({ ipv4, ipv6 }: Networks, address: string): boolean =>
  isIPv4(address) ? ipv4.check(address, "ipv4") : ipv6.check(address, "ipv6");

/** An address in its one spelling: no brackets, port or zone, IPv4 wherever it is one. */
function parseAddress(text: string): string | undefined {
  const bare = text
    .trim()
    .replace(/^\[([^\]]*)\](:\d+)?$/, "$1")
    .replace(/^(\d+\.\d+\.\d+\.\d+):\d+$/, "$1")
    .replace(/%.*$/, "");
  if (isIPv4(bare)) return bare;
  if (isIP(bare) !== 6) return undefined;
  const groups = groupsOf(bare);
  const isMapped = groups.slice(0, 5).every((group) => group === "0") && groups[5] === "ffff";
  if (!isMapped) return groups.join(":");
  const [high = 0, low = 0] = groups.slice(6).map((group) => Number.parseInt(group, 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

/** The eight groups of an IPv6 address, without leading zeros. */
function groupsOf(address: string): string[] {
  const [before = "", after = ""] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groups = (half: string): string[] => half.split(":").filter((group) => group !== "");
  const zeros = Array.from({ length: 8 - groups(before).length - groups(after).length }, () => "0");
  return [...groups(before), ...zeros, ...groups(after)];
}
