/**
 * Puts an application on a socket and takes it off again.
 */
import type { Server } from "bun";
import { AppError, messageOf } from "../base/errors.ts";
import type { Config } from "../config.ts";
import { errorBody, statusOf } from "./errors.ts";
import { jsonResponse } from "./exchange.ts";

/** Uploads of models are bounded by the disk, not here; JSON bodies have a limit of their own. */
const BODY_BYTES_MAX = 2 ** 44;
const POLL_MS = 20;
/** Characters of a bad Host header that an error quotes: the longest that DNS allows. */
const HOST_SHOWN = 253;

export interface RunningServer {
  /** `http://host:port`, as a client on this machine would write it. */
  readonly url: string;
  /** Accepts nothing more, lets running requests finish for up to `graceMs`, then cuts them off. */
  stop(graceMs: number): Promise<void>;
}

interface App {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  /** Where handlers learn the address of a client. */
  server?: Server<unknown> | null;
}

/** Throws `conflict` where the port is taken, `bad_request` where the address cannot be used. */
export function startServer(app: App, { host }: Pick<Config, "host">): RunningServer {
  const server = listen(app, host);
  app.server = server;
  const { hostname } = host;
  return {
    url: `http://${hostname.includes(":") ? `[${hostname}]` : hostname}:${server.port}`,
    stop: async (graceMs) => {
      void server.stop(); // closes the listener at once
      const deadlineMs = performance.now() + graceMs;
      while (server.pendingRequests > 0 && performance.now() < deadlineMs) await Bun.sleep(POLL_MS);
      await server.stop(true);
    },
  };
}

function listen(app: App, { hostname, port }: Config["host"]): Server<undefined> {
  try {
    return Bun.serve({
      hostname,
      port,
      fetch: (request) => app.fetch(withUrl(request)),
      error: (error) => jsonResponse(errorBody(error), statusOf(error)),
      development: false, // else an error that nobody caught is answered with a page that shows our source
      idleTimeout: 0, // a model may take minutes to load, and a token seconds to come
      maxRequestBodySize: BODY_BYTES_MAX,
      reusePort: false, // else a second server would share the port without a word
    });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code; // Bun.serve throws nothing else
    if (code === "EADDRINUSE") {
      throw new AppError("conflict", `cannot listen on ${hostname}:${port}: the address is already in use`);
    }
    throw new AppError("bad_request", `cannot listen on ${hostname}:${port}: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * A request whose URL can be read. One without a Host header, as HTTP/1.0 allows, is for this machine; a Host that is
 * none throws `bad_request`.
 */
function withUrl(request: Request): Request {
  if (URL.canParse(request.url)) return request;
  const host = request.headers.get("host");
  if (host) throw new AppError("bad_request", `Host: expected a host name, got '${host.slice(0, HOST_SHOWN)}'`);
  return new Request(`http://localhost${request.url}`, request);
}
