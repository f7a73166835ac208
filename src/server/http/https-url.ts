/**
 * Elysia finds a request's path after a fixed number of characters, the length of `http://`. Meanwhile, the URL of a
 * request by TLS is shown to it without the `s`.
 */

/** Call before Elysia gets the request. */
export function hideHttps(request: Request): Request {
  const { url } = request;
  if (!url.startsWith("https:")) return request;
  return Object.defineProperty(request, "url", { value: `http:${url.slice("https:".length)}`, configurable: true });
}

/** Call in Elysia's first handler. */
export function showHttps(request: Request): void {
  if (Object.hasOwn(request, "url")) Reflect.deleteProperty(request, "url");
}
