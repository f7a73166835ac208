/**
 * Origins that may call from a browser: pages of this machine, of this server and of the configured origins. A server
 * without API keys also checks the `Host` header (`hosts.ts`).
 */
import { AppError } from "../../base/index.ts";
import type { Config } from "../../base/config/index.ts";
import { bareHost, isLocalName, makeIsOwnHost } from "./hosts.ts";

/** In addition to the names of `isLocalName`. */
const LOCAL_ADDRESSES = ["127.0.0.1", "0.0.0.0", "::1"];
/** Pages of local programs. */
const BUILT_IN = ["app://*", "file://*", "tauri://*", "vscode-webview://*", "vscode-file://*"];

/** Characters of a refused header in an error: the longest DNS name. */
const SHOWN = 253;

/** Names of headers (RFC 9110, section 5.6.2), separated by commas. */
const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]+(?:[ \t]*,[ \t]*[\w!#$%&'*+.^`|~-]+)*$/;

const STAINLESS =
  "Arch Async Custom-Poll-Interval Helper Helper-Method Lang Os Package-Version Poll-Helper Retry-Count Runtime Runtime-Version Timeout";
/** Always in the answer to a preflight: some clients compare it with Ollama's. */
const USUAL_HEADERS = [
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

/** Response headers that pages of other origins may read, in addition to the safelisted ones. */
const EXPOSED_HEADERS = "Accept-Ranges,Content-Length,Content-Range,ETag,Request-Id,Retry-After,X-Request-Id";

export type Verdict =
  /** `preflight`: the answer consists of these headers. */
  | { readonly kind: "passes" | "preflight"; readonly headers: Readonly<Record<string, string>> }
  | { readonly kind: "refused"; readonly error: AppError };

type GuardParts = Pick<Config, "host" | "hosts" | "origins" | "apiKeys">;

export function makeGuard({ host: { hostname }, hosts, origins, apiKeys }: GuardParts): (request: Request) => Verdict {
  const isOwnHost = makeIsOwnHost({ hostname, hosts });
  const hasKeys = apiKeys.length > 0; // a page that rebinds a DNS name lacks the key
  const isKnownHost = (host: string): boolean => isOwnHost(host) || isHostOf(origins, host);
  return ({ method, headers }) => {
    const host = headers.get("host"); // only HTTP/1.0, which browsers no longer use, allows requests without Host
    if (!hasKeys && host !== null && !isKnownHost(host)) return { kind: "refused", error: foreignHost(host) };
    const origin = headers.get("origin");
    if (!origin) return { kind: method === "OPTIONS" ? "preflight" : "passes", headers: {} };
    if (isOwnOrigin(origin, host)) return { kind: "passes", headers: {} };
    if (!isAllowed(origin, origins)) return { kind: "refused", error: foreignOrigin(origin) };
    return crossOrigin(origins.includes("*") ? "*" : origin, method, headers);
  };
}

/** A page that may call may send any headers: its SDK, its tracing or a proxy in front of the server choose them. */
function crossOrigin(allowed: string, method: string, asked: Headers): Verdict {
  const named: Record<string, string> = allowed === "*" ? {} : { vary: "Origin" };
  const headers = { "access-control-allow-origin": allowed, ...named };
  if (method !== "OPTIONS") {
    return { kind: "passes", headers: { ...headers, "access-control-expose-headers": EXPOSED_HEADERS } };
  }
  const wanted = asked.get("access-control-request-headers") ?? "";
  const permit = {
    "access-control-allow-methods": "GET,POST,PUT,PATCH,DELETE,HEAD,OPTIONS",
    "access-control-allow-headers": HEADER_NAMES.test(wanted) ? `${USUAL_HEADERS},${wanted}` : USUAL_HEADERS,
    "access-control-max-age": "43200",
  };
  return { kind: "preflight", headers: { ...headers, ...permit } };
}

const isOwnOrigin = (origin: string, host: string | null): boolean =>
  webHost(origin) !== undefined && (origin === `http://${host}` || origin === `https://${host}`);

function isAllowed(origin: string, patterns: readonly string[]): boolean {
  if (patterns.includes("*")) return true;
  if (!/^https?:/i.test(origin)) return !/[\s,]/.test(origin) && matchesAny([...BUILT_IN, ...patterns], origin);
  const host = webHost(origin);
  if (host === undefined) return false;
  return isLocalName(host) || LOCAL_ADDRESSES.includes(host) || matchesAny(patterns, origin);
}

/** The host of a web origin as browsers write it: a scheme, a host and an optional port. */
function webHost(origin: string): string | undefined {
  const [, authority] = /^https?:\/\/(.+)$/i.exec(origin) ?? [];
  return authority === undefined ? undefined : bareHost(authority);
}

/**
 * True if pages of a host are among the configured origins. Ports are ignored: proxies forward the name without its
 * port.
 */
function isHostOf(patterns: readonly string[], host: string): boolean {
  const bare = bareHost(host);
  if (bare === undefined) return false;
  const portless = patterns.map((pattern) => pattern.replace(/:(?:\d+|\*)$/, ""));
  return [`http://${bare}`, `https://${bare}`].some((origin) => matchesAny(portless, origin));
}

const matchesAny = (patterns: readonly string[], origin: string): boolean =>
  patterns.some((pattern) => matches(pattern, origin));

/** A `*` in a pattern matches any text. */
function matches(pattern: string, origin: string): boolean {
  const text = origin.toLowerCase();
  const [before = "", after] = pattern.toLowerCase().split("*");
  if (after === undefined) return text === before;
  return text.length >= before.length + after.length && text.startsWith(before) && text.endsWith(after);
}

function foreignHost(host: string): AppError {
  const name = bareHost(host);
  const way = name === undefined ? "" : `: HEARTH_HOSTS=${name} allows it, and with HEARTH_API_KEYS any name will do`;
  return new AppError("forbidden", `Host '${host.slice(0, SHOWN)}' is not a name of this server${way}`);
}

function foreignOrigin(origin: string): AppError {
  const shown = origin.slice(0, SHOWN);
  const way = origin.includes("://") ? `: HEARTH_ORIGINS=${shown} allows it` : "";
  return new AppError("forbidden", `pages of origin '${shown}' may not call this server${way}`);
}
