/** IP addresses and lists of networks. */
import { BlockList, isIP, isIPv4 } from "node:net";

/** Addresses and CIDR ranges. */
export interface Networks {
  readonly ipv4: BlockList;
  readonly ipv6: BlockList;
}

/** Returns whether a text is an address or a CIDR range. */
export function isNetwork(text: string): boolean {
  const [address = "", bits, rest] = text.split("/");
  const family = isIP(address);
  if (family === 0 || rest !== undefined) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128));
}

/**
 * Two lists, because node treats an IPv4 address like the IPv6 one that maps it. Skips texts that `isNetwork` refuses.
 */
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

/** @param address in any spelling, without brackets or zone */
export const isWithin = ({ ipv4, ipv6 }: Networks, address: string): boolean =>
  isIPv4(address) ? ipv4.check(address, "ipv4") : ipv6.check(address, "ipv6");

/** The canonical spelling of an address: no brackets, port or zone, and IPv4 where an IPv6 address maps one. */
export function parseAddress(text: string): string | undefined {
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
export function groupsOf(address: string): string[] {
  const [before = "", after = ""] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groups = (half: string): string[] => half.split(":").filter((group) => group !== "");
  const zeros = Array.from({ length: 8 - groups(before).length - groups(after).length }, () => "0");
  return [...groups(before), ...zeros, ...groups(after)];
}
