/** Answers for unknown paths and methods. Clients of `/api` and `/v1` get errors in the format of their API. */
import { AppError } from "../base/index.ts";
import { errorBodyFor, isV1 } from "./http/errors.ts";
import { jsonResponse, textResponse } from "./http/exchange.ts";
import { matches } from "./http/paths.ts";
import { idHeaders, makeRequestId } from "./http/request-id.ts";

interface Route {
  readonly method: string;
  readonly path: string;
}

const SHOWN = 200;

export function notFound(request: Request): Response {
  const { pathname } = new URL(request.url);
  if (!isApi(pathname)) return textResponse("404 page not found", 404);
  return failure(request, 404, `there is no ${request.method} ${pathname.slice(0, SHOWN)}`);
}

/** 405 if the path exists with other methods, else 404. */
export function noSuchRoute(request: Request, routes: readonly Route[]): Response {
  const { pathname } = new URL(request.url);
  const named = routes.filter((route) => route.path === pathname);
  const found = named.length > 0 ? named : routes.filter((route) => matches(route.path, pathname));
  const methods = found.map((route) => route.method);
  if (methods.length === 0) return notFound(request);
  const allow = [...new Set(methods.flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])))].join(", ");
  // the text that native clients expect
  if (!isV1(request)) return textResponse("405 method not allowed", 405, { allow });
  const response = failure(request, 405, `${pathname.slice(0, SHOWN)} takes ${allow}, got ${request.method}`);
  response.headers.set("allow", allow);
  return response;
}

const isApi = (pathname: string): boolean => /^\/+(api|v1)(\/|$)/i.test(pathname);

function failure(request: Request, status: 404 | 405, message: string): Response {
  const id = makeRequestId();
  const response = jsonResponse(errorBodyFor(request)(new AppError("not_found", message), id), status);
  for (const [name, value] of Object.entries(idHeaders(request, id))) response.headers.set(name, value);
  return response;
}
