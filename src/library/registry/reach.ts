/**
 * Limits on a registry's redirects and upload locations. This machine may reach networks that the registry cannot, so a
 * registry may not redirect to an address that is closer to this machine than its own.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { abortable, AppError } from "../../base/index.ts";
import { groupsOf, isPublicAddress, isWithin, parseAddress, parseNetworks } from "../../base/system.ts";

/** Resolves the addresses of a host. */
export type Lookup = (host: string, options: { all: true }) => Promise<readonly { readonly address: string }[]>;

/** Closeness of an address: public internet, private network, this machine, or special purpose. */
const [PUBLIC, PRIVATE, HERE, SPECIAL] = [0, 1, 2, 3] as const;

/**
 * The last line: ranges for benchmarks and documentation, which laboratories use, and which proxies use for fake
 * addresses.
 */
const PRIVATE_NETWORKS =
  "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7 fec0::/10 " +
  "198.18.0.0/15 192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32";
const HERE_NETWORKS = "127.0.0.0/8 0.0.0.0/8 ::/127";

/** @returns the closeness of an address; 0: public internet */
export function closeness(text: string): number {
  const address = inIPv4(parseAddress(text) ?? "");
  if (isPublicAddress(address)) return PUBLIC;
  if (isWithin(parseNetworks(PRIVATE_NETWORKS.split(" ")), address)) return PRIVATE;
  return isWithin(parseNetworks(HERE_NETWORKS.split(" ")), address) ? HERE : SPECIAL; // link-local, multicast …
}

/** The IPv4 address inside a NAT64 address (64:ff9b::/96); others unchanged. */
function inIPv4(address: string): string {
  if (isIP(address) !== 6) return address;
  const groups = groupsOf(address);
  if (groups.slice(0, 6).join(":") !== "64:ff9b:0:0:0:0") return address;
  const [high = 0, low = 0] = groups.slice(6).map((group) => Number.parseInt(group, 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join(".");
}

/**
 * @returns a check to call before each request, which throws `registry`. The registry's own addresses are resolved at
 * its first request: its name may resolve differently later.
 */
export function makeReach(base: URL, ask: Lookup = lookup): (url: URL, signal: AbortSignal) => Promise<void> {
  const find = async ({ hostname }: URL): Promise<number[]> => {
    const bare = hostname.replace(/^\[|\]$/g, "");
    if (isIP(bare) !== 0) return [closeness(bare)];
    const found = await ask(bare, { all: true }).catch(() => []); // a proxy may resolve it; else the request fails
    return found.map(({ address }) => closeness(address));
  };
  let own: Promise<number[]> | undefined;
  return async (url, signal) => {
    own ??= find(base);
    if (url.origin === base.origin) return;
    const found = await abortable(find(url), [signal]);
    if (found.every((each) => each === PUBLIC)) return;
    const farthest = farthestOf(await abortable(own, [signal]));
    if (found.every((each) => each <= farthest)) return;
    const why = "its address is in a private network that the registry is not in";
    throw new AppError("registry", `${base.host} may not send us to ${url.host}: ${why}`);
  };
}

/** The farthest of several addresses; an unresolved host counts as far, and so does a special-purpose address. */
const farthestOf = (found: readonly number[]): number =>
  found.length === 0 ? PUBLIC : Math.min(...found.map((each) => (each === SPECIAL ? PUBLIC : each)));
