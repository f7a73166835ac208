/**
 * `HTTP_PROXY` and its like, which `fetch` obeys by itself. It would send what is for this machine there too, where
 * curl asks for `NO_PROXY` and Go's programs do not: a proxy elsewhere cannot reach a server that listens here.
 */

const HERE = ["localhost", "127.0.0.1", "::1"];
const PROXIES = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];

/** Has requests of this process, and of those it starts, reach this machine without a proxy. Changes `env`. */
export function reachHereDirectly(env: Record<string, string | undefined>): void {
  if (!PROXIES.some((name) => env[name])) return;
  const asked = env["no_proxy"] || env["NO_PROXY"] || "";
  const hosts = new Set([...asked.split(",").map((host) => host.trim()), ...HERE]);
  env["no_proxy"] = env["NO_PROXY"] = [...hosts].filter((host) => host !== "").join(",");
}
