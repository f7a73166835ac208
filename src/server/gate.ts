/** Checks before the routes: the path, a stopping server, origin and host, the API key. */
import { AppError, shuttingDown } from "../base/index.ts";
import type { AppDeps } from "./routes/deps.ts";
import { makeAuth } from "./http/auth.ts";
import { makeGuard } from "./http/cors.ts";
import { errorResponse } from "./http/exchange.ts";
import { isSeen } from "./http/raw-target.ts";
import { notFound } from "./no-route.ts";

/** Paths that are answered while the server stops. */
const PROBES = /^\/(health|livez|readyz|startupz|metrics)$/;

interface GateParts extends Pick<AppDeps, "config" | "gateway"> {
  /** True if a proxy that decodes the path could take it for a hook. */
  readonly isHook: (pathname: string) => boolean;
  /** Remembers the name of each request's key. */
  readonly keyNames: WeakMap<Request, string>;
  /** Remembers the owner of each request's key. */
  readonly owners: WeakMap<Request, string>;
}

/**
 * @param headers of the answer; the guards add theirs
 * @returns the answer to a rejected request
 */
type Gate = (request: Request, headers: object) => Response | undefined;

export function makeGate({ config, gateway, isHook, keyNames, owners }: GateParts): Gate {
  const guard = makeGuard(config);
  const admit = makeAuth(config.apiKeys);
  return (request, headers) => {
    const { pathname } = new URL(request.url);
    if (!isSeen(pathname) || isHook(pathname)) return notFound(request);
    if (gateway?.isDraining() && !PROBES.test(pathname)) {
      // the listener stays open until the gateway has stopped, so that senders get a definite answer
      return errorResponse(request, shuttingDown(gateway.backInMs()));
    }
    const verdict = guard(request);
    if (verdict.kind === "refused") return errorResponse(request, verdict.error);
    Object.assign(headers, verdict.headers);
    if (verdict.kind === "preflight") return new Response(null, { status: 204 });
    const { passes, keyName, owner } = admit(request, pathname);
    if (keyName !== undefined) keyNames.set(request, keyName);
    if (owner !== undefined) owners.set(request, owner);
    if (passes) return undefined;
    Object.assign(headers, { "www-authenticate": "Bearer" });
    return errorResponse(request, new AppError("unauthorized", "unauthorized"));
  };
}
