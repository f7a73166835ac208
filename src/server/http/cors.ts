/**
 * Who may call from a browser. Origins are matched against patterns; a server on a loopback address also checks the
 * `Host` header, so that a page cannot reach it through a name that it made point here (DNS rebinding).
 */
import { BlockList, isIP } from "node:net";
import { hostname as machineName, networkInterfaces } from "node:os";

const LOCAL_NAMES = ["localhost", "127.0.0.1", "0.0.0.0"];
const BUILT_IN = [
  ...LOCAL_NAMES.flatMap((name) => [`http://${name}`, `https://${name}`, `http://${name}:*`, `https://${name}:*`]),
  "app://*",
  "file://*",
  "tauri://*",
  "vscode-webview://*",
  "vscode-file://*",
];

const STAINLESS =
  "Arch Async Custom-Poll-Interval Helper Helper-Method Lang Os Package-Version Poll-Helper Retry-Count Runtime Runtime-Version Timeout";
const ALLOWED_HEADERS = [
  "Authorization",
  "Content-Type",
  "User-Agent",
  "Accept",
  "X-Requested-With",
  "OpenAI-Beta",
  "X-Api-Key",
  "Range",
  "If-Range",
  "If-None-Match",
  "Anthropic-Version",
  "Anthropic-Beta",
  "Anthropic-Dangerous-Direct-Browser-Access",
  ...STAINLESS.split(" ").map((name) => `X-Stainless-${name}`),
].join(",");

const PREFLIGHT = {
  "access-control-allow-methods": "GET,POST,PUT,PATCH,DELETE,HEAD,OPTIONS",
  "access-control-allow-headers": ALLOWED_HEADERS,
  "access-control-max-age": "43200",
};

/** What of an answer a page of another origin may read, beside what every page may. */
const EXPOSED_HEADERS = "Accept-Ranges,Content-Length,Content-Range,ETag,Request-Id,Retry-After,X-Request-Id";

/** Either goes on to the routes, with headers for the answer, or is answered at once, without a body. */
export type Verdict = { readonly status?: 204 | 403; readonly headers: Readonly<Record<string, string>> };

/** @param origins patterns added to the built-in ones; @param hostname the address that the server listens on */
export function makeGuard(parts: { origins: readonly string[]; hostname: string }): (request: Request) => Verdict {
  const patterns = [...parts.origins, ...BUILT_IN];
  const loopbackOnly = isLoopback(parts.hostname);
  const privates = privateAddresses();
  return (request) => {
    const origin = judgeOrigin(request, patterns);
    if (origin.status || !loopbackOnly) return origin;
    return judgeHost(request, privates) ?? origin;
  };
}

function judgeOrigin(request: Request, patterns: readonly string[]): Verdict {
  const origin = request.headers.get("origin");
  const host = request.headers.get("host") ?? "";
  if (!origin || origin === `http://${host}` || origin === `https://${host}`) return { headers: {} };
  if (!patterns.some((pattern) => matches(pattern, origin))) return { status: 403, headers: {} };
  const headers: Record<string, string> = patterns.includes("*")
    ? { "access-control-allow-origin": "*" }
    : { "access-control-allow-origin": origin, vary: "Origin" };
  if (request.method === "OPTIONS") return { status: 204, headers: { ...headers, ...PREFLIGHT } };
  return { headers: { ...headers, "access-control-expose-headers": EXPOSED_HEADERS } };
}

/** A `*` in a pattern stands for any text. */
function matches(pattern: string, origin: string): boolean {
  const text = origin.toLowerCase();
  const [before = "", after] = pattern.toLowerCase().split("*");
  if (after === undefined) return text === before;
  return text.length >= before.length + after.length && text.startsWith(before) && text.endsWith(after);
}

/** undefined: the request goes on. */
function judgeHost(request: Request, privates: BlockList): Verdict | undefined {
  const host = hostWithoutPort(request.headers.get("host") ?? "").toLowerCase();
  if (isIP(host)) return isOwnAddress(host, privates) ? undefined : { status: 403, headers: {} };
  if (!isOwnName(host)) return { status: 403, headers: {} };
  return request.method === "OPTIONS" ? { status: 204, headers: {} } : undefined;
}

function hostWithoutPort(host: string): string {
  if (isIP(host)) return host;
  return host.replace(/:\d*$/, "").replace(/^\[(.*)\]$/, "$1");
}

function isOwnName(host: string): boolean {
  if (host === "" || host === "localhost" || host === machineName().toLowerCase()) return true;
  return [".localhost", ".local", ".internal"].some((suffix) => host.endsWith(suffix));
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

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "::1" || hostname.startsWith("127.");
}
