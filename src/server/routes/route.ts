/** A route of the server: its handler and its description. `app.ts` registers it with Elysia. */
import type { Exchange, Reply } from "../http/exchange.ts";
import type { RouteNote } from "../schema/describe.ts";
import type { RouteDeps } from "./deps.ts";

/** Parts of a request that its handler may use besides the body. */
export interface RouteInput {
  /** The path's parameters, decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** The address of the other end. */
  readonly peer: string | undefined;
}

type Handler = (deps: RouteDeps, exchange: Exchange, input: RouteInput) => Reply | Promise<Reply>;

export interface Route {
  readonly method: "DELETE" | "GET" | "HEAD" | "POST";
  readonly path: string;
  readonly handler: Handler;
  /** Undefined: the route is not part of the API's description. */
  readonly note: RouteNote | undefined;
}

const routeOf =
  (method: Route["method"]) =>
  (path: string, handler: Handler, note?: RouteNote): Route => ({ method, path, handler, note });

export const del = routeOf("DELETE");
export const get = routeOf("GET");
export const head = routeOf("HEAD");
export const post = routeOf("POST");
