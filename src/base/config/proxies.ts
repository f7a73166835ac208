/**
 * `HTTP_PROXY` and similar variables, which `fetch` obeys. For addresses of this machine, `fetch` and curl use the
 * proxy unless `NO_PROXY` excludes them, and Go's programs do not; a proxy on another machine cannot reach a server
 * that listens only here.
 */

const HERE = ["localhost", "127.0.0.1", "::1"];
const PROXIES = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];

/** Makes requests from this process and its children reach this machine without a proxy. Changes `env`. */
export function reachHereDirectly(env: Record<string, string | undefined>): void {
  if (!PROXIES.some((name) => env[name])) return;
  const asked = env["no_proxy"] || env["NO_PROXY"] || "";
  const hosts = new Set([...asked.split(",").map((host) => host.trim()), ...HERE]);
  env["no_proxy"] = env["NO_PROXY"] = [...hosts].filter((host) => host !== "").join(",");
}
