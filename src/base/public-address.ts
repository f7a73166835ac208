/**
 * Distinguishes addresses on the open internet from all others (this machine, its network, metadata services,
 * documentation ranges), which untrusted input may not name.
 */
import { isIP } from "node:net";
import { isWithin, parseNetworks } from "./networks.ts";

/** IANA's special-purpose registries, IPv4. */
const V4 =
  "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 " +
  "192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4";
/** The same for IPv6, including ranges that embed an IPv4 address. */
const V6 =
  "::/96 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 3fff::/20 5f00::/16 " +
  "fc00::/7 fe80::/10 fec0::/10 ff00::/8";

const CLOSED = parseNetworks(`${V4} ${V6}`.split(" "));

/** False for a text that is not an address. */
export function isPublicAddress(address: string): boolean {
  const bare = address.replace(/^\[|\]$/g, "").replace(/%.*$/, "");
  return isIP(bare) !== 0 && !isWithin(CLOSED, bare);
}
