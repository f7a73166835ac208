/**
 * The server that the command line talks to: `HEARTH_HOST` (or `OLLAMA_HOST`) may be the URL of another machine; else
 * it is the address that a server here would listen on.
 */
import { AppError } from "../../base/index.ts";
import { type ConfigSources, findEnv, readSettings } from "../../base/config/index.ts";
import type { ServerAddress } from "./client.ts";

/** Throws `bad_request` for an invalid setting. */
export function clientSettings(sources: ConfigSources): { server: ServerAddress; home: string } {
  const { env } = sources;
  const apiKey = env["HEARTH_API_KEY"]?.trim() || undefined;
  const asked = findEnv(env, ["HEARTH_HOST", "OLLAMA_HOST"])?.value ?? "";
  if (!/^https?:\/\/[^/]*\/.|^https:/i.test(asked)) {
    const { home, setting } = readSettings(sources);
    const host = setting("host");
    return { server: { url: `http://${reachable(host.hostname)}:${host.port}`, apiKey }, home };
  }
  if (!URL.canParse(asked)) {
    throw new AppError("bad_request", `HEARTH_HOST: expected an address or a URL, got '${asked}'`);
  }
  const { home } = readSettings(sources);
  return { server: { url: asked.replace(/\/+$/, ""), apiKey }, home };
}

/** Replaces a wildcard address by loopback. */
function reachable(hostname: string): string {
  if (hostname === "0.0.0.0") return "127.0.0.1";
  if (hostname === "::") return "[::1]";
  return hostname.includes(":") ? `[${hostname}]` : hostname;
}
