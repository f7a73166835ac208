/** Starts an application on a socket, and stops it. */
import type { BunRequest, Server } from "bun";
import { AppError, messageOf } from "../../base/index.ts";
import type { Address, Config } from "../../base/config/index.ts";
import { errorBody, statusOf } from "./errors.ts";
import { jsonResponse } from "./exchange.ts";
import { DOUBLED_ROUTES, isResolved, SEEN_ROUTES } from "./raw-target.ts";

/** The disk bounds uploads of models; JSON bodies have a limit of their own. */
const BODY_BYTES_MAX = 2 ** 44;
const POLL_MS = 20;
/** Characters of a bad Host header in an error: the longest DNS name. */
const HOST_SHOWN = 253;

export interface RunningServer {
  /** `http://host:port`, for clients on this machine. */
  readonly url: string;
  /** Accepts nothing more, lets running requests finish for up to `graceMs`, then cuts them off. */
  stop(graceMs: number): Promise<void>;
}

interface App {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  /** Gives handlers the address of a client. */
  server?: Server<unknown> | null;
}

/** Throws `conflict` if the port is in use, `bad_request` if the address is unusable. */
export function startServer(app: App, { host }: Pick<Config, "host">): RunningServer {
  const fetch = (request: Request, segments?: readonly string[]) => app.fetch(checked(withUrl(request), segments));
  const seen = (request: BunRequest) => fetch(request, Object.values(request.params));
  const doubled = (request: BunRequest) => {
    const url = new URL(withUrl(request).url);
    url.pathname = url.pathname.replace(/\/{2,}/, "/");
    const [api = ""] = url.pathname.slice(1).split("/");
    return fetch(new Request(url.href, request), [api, ...Object.values(request.params)]);
  };
  const server = listen({
    ...host,
    routes: Object.fromEntries([
      ...SEEN_ROUTES.map((route) => [route, seen] as const),
      ...DOUBLED_ROUTES.map((route) => [route, doubled] as const),
    ]),
    fetch: (request) => fetch(request),
  });
  app.server = server;
  return { url: urlOf(host.hostname, server), stop: stopOf(server) };
}

/** A server that passes every request unchanged to one function. Throws like `startServer`. */
export function startBare(
  at: Address | { readonly unix: string },
  answer: (request: Request, server: Server<undefined>) => Promise<Response>,
): RunningServer {
  const server = listen({ ...at, fetch: (request, self) => answer(withUrl(request), self) });
  return { url: "unix" in at ? `unix:${at.unix}` : urlOf(at.hostname, server), stop: stopOf(server) };
}

const urlOf = (hostname: string, { port }: Server<undefined>): string =>
  `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${port}`;

const stopOf =
  (server: Server<undefined>): RunningServer["stop"] =>
  async (graceMs) => {
    void server.stop(); // closes the listener at once
    const deadlineMs = performance.now() + graceMs;
    while (server.pendingRequests > 0 && performance.now() < deadlineMs) await Bun.sleep(POLL_MS);
    await server.stop(true);
  };

type Place = { readonly hostname: string; readonly port: number } | { readonly unix: string };

interface Handlers {
  readonly routes?: Readonly<Record<string, (request: BunRequest) => Response | Promise<Response>>>;
  readonly fetch: (request: Request, server: Server<undefined>) => Response | Promise<Response>;
}

function listen(options: Place & Handlers): Server<undefined> {
  const shown = "unix" in options ? `unix:${options.unix}` : `${options.hostname}:${options.port}`;
  try {
    return Bun.serve({
      ...options,
      error: (error) => jsonResponse(errorBody(error), statusOf(error)),
      development: false, // true would answer an uncaught error with a page that shows our source
      idleTimeout: 0, // a model may take minutes to load, and seconds per token
      maxRequestBodySize: BODY_BYTES_MAX,
      reusePort: false, // true would let a second server share the port silently
    } as Bun.Serve.Options<undefined>);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code; // Bun.serve throws no other type
    if (code === "EADDRINUSE") {
      throw new AppError("conflict", `cannot listen on ${shown}: the address is already in use`);
    }
    const why = ("unix" in options ? undefined : REFUSALS[code ?? ""]) ?? messageOf(error);
    throw new AppError("bad_request", `cannot listen on ${shown}: ${why}`, { cause: error });
  }
}

const NO_ADDRESS = "no address of this machine has that name or number";

/** The problem of a host and port, by the system's error code; an unknown name has one of the first two codes. */
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
