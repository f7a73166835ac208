/** Starts an application on a socket, and stops it. */
import type { BunRequest, Server } from "bun";
import { AppError, messageOf } from "../../base/index.ts";
import type { Config } from "../../base/config/index.ts";
import { errorBody, statusOf } from "./errors.ts";
import { jsonResponse } from "./exchange.ts";
import { hideHttps } from "./https-url.ts";
import { DOUBLED_ROUTES, isResolved, SEEN_ROUTES } from "./raw-target.ts";
import type { TlsPair } from "./tls.ts";

/** The disk bounds uploads of models; JSON bodies have a separate limit. */
const BODY_BYTES_MAX = 2 ** 44;
const POLL_MS = 20;
/** Characters of a bad Host header in an error: the longest DNS name. */
const HOST_SHOWN = 253;

export interface RunningServer {
  /** `http://host:port` or `https://host:port`, for clients on this machine. */
  readonly url: string;
  /**
   * Uses another certificate for new connections; running requests continue. No effect on a server without one. Throws
   * `unsupported` on Windows.
   */
  renew(tls: TlsPair): Promise<void>;
  /** Accepts nothing more, lets running requests finish for up to `graceMs`, then cuts them off. */
  stop(graceMs: number): Promise<void>;
}

interface App {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  /** Gives handlers the address of a client. */
  server?: Pick<Server<unknown>, "requestIP"> | null;
}

/** Throws `conflict` if the port is in use, `bad_request` if the address is unusable. */
export function startServer(app: App, { host }: Pick<Config, "host">, tls?: TlsPair): RunningServer {
  const fetch = (request: Request, segments?: readonly string[]) =>
    app.fetch(hideHttps(checked(withUrl(request), segments)));
  const seen = (request: BunRequest) => fetch(request, Object.values(request.params));
  const doubled = (request: BunRequest) => {
    const url = new URL(withUrl(request).url);
    url.pathname = url.pathname.replace(/\/{2,}/, "/");
    const [api = ""] = url.pathname.slice(1).split("/");
    return fetch(new Request(url.href, request), [api, ...Object.values(request.params)]);
  };
  const server = open(host, tls, {
    routes: Object.fromEntries([
      ...SEEN_ROUTES.map((route) => [route, seen] as const),
      ...DOUBLED_ROUTES.map((route) => [route, doubled] as const),
    ]),
    fetch: (request) => fetch(request),
  });
  app.server = server;
  return server;
}

/** A server that passes every request unchanged to one function. Throws like `startServer`. */
export function startBare(
  at: Place,
  answer: (request: Request, server: Pick<Server<undefined>, "requestIP">) => Promise<Response>,
  tls?: TlsPair,
): RunningServer {
  return open(at, tls, { fetch: (request, self) => answer(withUrl(request), self) });
}

type Opened = RunningServer & Pick<Server<undefined>, "requestIP">;

/**
 * Bun takes a certificate only when a server begins to listen. To renew it, a second server listens at the same port,
 * and the first one accepts no more connections.
 */
function open(at: Place, tls: TlsPair | undefined, handlers: Handlers): Opened {
  const first = tls ? listenShared(at, { ...handlers, tls }) : listen({ ...at, ...handlers });
  let servers = [first];
  const scheme = tls ? "https" : "http";
  return {
    url: "unix" in at ? `unix:${at.unix}` : `${scheme}://${bracketed(at.hostname)}:${first.port}`,
    requestIP: (request) => servers[0]?.requestIP(request) ?? null,
    async renew(pair) {
      const [before] = servers;
      if ("unix" in at || !tls || !before) return;
      if (!SHARES_PORTS) throw new AppError("unsupported", "on Windows the server must be started again for it");
      servers = [listen({ ...at, port: before.port!, ...handlers, tls: pair, isShared: true }), ...servers];
      await Bun.sleep(LEAVE_MS);
      void before.stop().then(() => void (servers = servers.filter((server) => server !== before)));
    },
    async stop(graceMs) {
      for (const server of servers) void server.stop(); // closes the listener at once
      const deadlineMs = performance.now() + graceMs;
      const isBusy = (): boolean => servers.some(({ pendingRequests }) => pendingRequests > 0);
      while (isBusy() && performance.now() < deadlineMs) await Bun.sleep(POLL_MS);
      await Promise.all(servers.map((server) => server.stop(true)));
    },
  };
}

const bracketed = (hostname: string): string => (hostname.includes(":") ? `[${hostname}]` : hostname);

/** Connections that the system has given to the first server are accepted in this time. */
const LEAVE_MS = 20;
/** Windows has no shared ports. */
const SHARES_PORTS = process.platform !== "win32";

/** A port that a later server of this process may share; another process that uses it is detected first. */
function listenShared(at: Place, options: Handlers & { readonly tls: TlsPair }): Server<undefined> {
  const alone = listen({ ...at, ...options });
  if ("unix" in at || !SHARES_PORTS) return alone;
  const { port } = alone;
  void alone.stop(true);
  return listen({ ...at, port: port!, ...options, isShared: true });
}

type Place = { readonly hostname: string; readonly port: number } | { readonly unix: string };

interface Handlers {
  readonly routes?: Readonly<Record<string, (request: BunRequest) => Response | Promise<Response>>>;
  readonly fetch: (request: Request, server: Server<undefined>) => Response | Promise<Response>;
}

interface Listening extends Handlers {
  readonly tls?: TlsPair;
  readonly isShared?: boolean;
}

function listen({ isShared = false, ...options }: Place & Listening): Server<undefined> {
  const shown = "unix" in options ? `unix:${options.unix}` : `${options.hostname}:${options.port}`;
  try {
    return Bun.serve({
      ...options,
      error: (error) => jsonResponse(errorBody(error), statusOf(error)),
      development: false, // true would answer an uncaught error with a page that shows our source
      idleTimeout: 0, // a model may take minutes to load, and seconds per token
      maxRequestBodySize: BODY_BYTES_MAX,
      reusePort: isShared && SHARES_PORTS, // otherwise a second server would share the port without an error
    } as Bun.Serve.Options<undefined>);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code; // Bun.serve throws no other type
    if (code === "EADDRINUSE") {
      throw new AppError(
        "conflict",
        `cannot listen on ${shown}: the address is already in use, maybe by another Hearth or by Ollama`,
      );
    }
    const why = ("unix" in options ? undefined : REFUSALS[code ?? ""]) ?? messageOf(error);
    throw new AppError("bad_request", `cannot listen on ${shown}: ${why}`, { cause: error });
  }
}

const NO_ADDRESS = "no address of this machine has that name or number";

/** The error of a host and port, by the system's error code; an unknown name has one of the first two codes. */
const REFUSALS: Readonly<Record<string, string>> = {
  ENOENT: NO_ADDRESS,
  EADDRNOTAVAIL: NO_ADDRESS,
  EACCES: "ports below 1024 need a privilege that this process has not",
};

/** Throws `bad_request` for a target that a proxy in front could have read as another path. */
function checked(request: Request, segments: readonly string[] | undefined): Request {
  if (!isResolved(segments, new URL(request.url).pathname)) return request;
  throw new AppError("bad_request", "the path of the request has a backslash, '.' or '..' in it");
}

/**
 * A request with a valid URL. One without a Host header, which HTTP/1.0 allows, is for this machine; an invalid Host
 * throws `bad_request`.
 */
function withUrl(request: Request): Request {
  if (URL.canParse(request.url)) return request;
  const host = request.headers.get("host");
  if (host !== null)
    throw new AppError("bad_request", `Host: expected a host name, got '${host.slice(0, HOST_SHOWN)}'`);
  return new Request(`http://localhost${request.url}`, request);
}
