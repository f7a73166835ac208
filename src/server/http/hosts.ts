/**
 * Host names by which a request may call this server. A page can point a name of its own at this machine (DNS
 * rebinding): the browser then treats the server as the page's origin, but its requests still carry that name as
 * `Host`. An address cannot be pointed elsewhere.
 */
import { BlockList, isIP } from "node:net";
import { hostname as machineName, networkInterfaces } from "node:os";
import { isLoopback } from "../../base/index.ts";

/** A name or an IPv4 address, or an IPv6 address in brackets; then an optional port. */
const HOST = /^(?:([a-z0-9._-]{1,253})|\[([0-9a-f:.]{2,45})\])(?::\d{0,5})?$/i;

/** Names of Docker and Podman for the machine that runs their containers. */
const CONTAINER_NAMES = ["host.docker.internal", "gateway.docker.internal", "host.containers.internal"];

interface OwnHosts {
  /** The address that the server listens on. */
  readonly hostname: string;
  /** Names used by proxies and clusters: a name, `*.name` or `*`. */
  readonly hosts: readonly string[];
}

/** @returns a function: true if a Host header, with or without a port, names this server */
export function makeIsOwnHost({ hostname, hosts }: OwnHosts): (host: string) => boolean {
  const privates = privateAddresses();
  const isLocal = isLoopback(hostname);
  const named = [hostname, ...CONTAINER_NAMES, ...hosts].map((name) => name.toLowerCase());
  return (header) => {
    const host = bareHost(header);
    if (host === undefined) return false;
    if (isIP(host) !== 0 && (!isLocal || isOwnAddress(host, privates))) return true;
    return isLocalName(host) || isMachineName(host) || named.some((pattern) => fits(pattern, host));
  };
}

/**
 * Removes port, brackets and the final dot, and lowers the case; undefined if the text is not a host in a browser's
 * spelling.
 */
export function bareHost(header: string): string | undefined {
  const [, name, address] = HOST.exec(header) ?? [];
  if (name !== undefined) return name.toLowerCase().replace(/\.$/, "");
  const url = address === undefined ? null : URL.parse(`http://[${address}]`);
  const bare = url?.hostname.slice(1, -1);
  return bare?.startsWith("::ffff:") ? undefined : bare; // a browser writes such an IPv4 address in its own form
}

/** Browsers resolve these names without DNS. */
export const isLocalName = (host: string): boolean => host === "localhost" || host.endsWith(".localhost");

/** The machine's host name, whole or its first label, and its name on the local network. */
function isMachineName(host: string): boolean {
  const whole = machineName().toLowerCase();
  const [first = whole] = whole.split(".");
  return [whole, first, `${first}.local`].includes(host);
}

function fits(pattern: string, host: string): boolean {
  if (pattern === "*") return true;
  return pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : host === pattern;
}

/** Loopback, private, unspecified, or an address of this machine. */
function isOwnAddress(address: string, privates: BlockList): boolean {
  const family = isIP(address) === 6 ? "ipv6" : "ipv4";
  if (privates.check(address, family)) return true;
  return Object.values(networkInterfaces()).some((cards) => cards?.some((card) => card.address === address));
}

function privateAddresses(): BlockList {
  const list = new BlockList();
  for (const [subnet, bits] of [
    ["127.0.0.0", 8],
    ["10.0.0.0", 8],
    ["172.16.0.0", 12],
    ["192.168.0.0", 16],
  ] as const) {
    list.addSubnet(subnet, bits, "ipv4");
  }
  list.addAddress("0.0.0.0", "ipv4");
  list.addSubnet("fc00::", 7, "ipv6");
  for (const address of ["::1", "::"]) list.addAddress(address, "ipv6");
  return list;
}
