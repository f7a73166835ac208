/**
 * The server that the command line talks to: `HEARTH_HOST` (or `OLLAMA_HOST`) may be the URL of another machine; else
 * it is the address that a server here would listen on.
 */
import { readFileSync } from "node:fs";
import { AppError, messageOf } from "../../base/index.ts";
import { type ConfigSources, findEnv, readSettings } from "../../base/config/index.ts";
import type { PinnedTls, ServerAddress } from "./client.ts";

/** Throws `bad_request` for an invalid setting, and a certificate of the server here that cannot be read. */
export function clientSettings(sources: ConfigSources): { server: ServerAddress; home: string } {
  const { env } = sources;
  const apiKey = env["HEARTH_API_KEY"]?.trim() || undefined;
  if (apiKey !== undefined && !/^[\x20-\x7e]+$/.test(apiKey)) {
    throw new AppError("bad_request", "HEARTH_API_KEY: expected a key of ASCII characters in one line, got others");
  }
  const asked = findEnv(env, ["HEARTH_HOST", "OLLAMA_HOST"])?.value ?? "";
  if (!/^https?:\/\/[^/]*\/.|^https:/i.test(asked)) {
    const { home, setting } = readSettings(sources);
    const { hostname, port } = setting("host");
    const certificate = setting("tlsCertificate");
    const tls = certificate === undefined ? {} : { tls: pinned(certificate) };
    const url = `${certificate === undefined ? "http" : "https"}://${reachable(hostname)}:${port}`;
    return { server: { url, apiKey, ...tls }, home };
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

/** Trusts the certificate in a file, whatever its names: the server is reached by an address of this machine. */
function pinned(path: string): PinnedTls {
  const ca = certificatesIn(path);
  const own = Buffer.from(/-BEGIN CERTIFICATE-+([\w+/=\s]+)-/.exec(ca)?.[1] ?? "", "base64");
  return {
    ca,
    allowPartialTrustChain: true,
    checkServerIdentity: (_, { raw }) =>
      own.equals(raw) ? undefined : new Error(`its certificate is not the one in '${path}'`),
  };
}

function certificatesIn(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new AppError("bad_request", `tls.certificate: cannot read '${path}': ${messageOf(error)}`, { cause: error });
  }
}
