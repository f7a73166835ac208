/** `database.url` as people write it: an address of a PostgreSQL server, in the forms that its own programs take. */

const ADDRESS_EXPECTED = "expected postgres://user:password@host:port/database, of one host";
/** Of `sslmode`, as the client takes them. */
const SSL_MODES: readonly string[] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];
/** Settings that name files; `system` names the certificates of this machine. */
const FILES = ["sslrootcert", "sslcert", "sslkey"];

/** For Bun's client, which takes the path of a socket, not its folder. */
export type PostgresAddress =
  | { readonly url: string; readonly database?: string }
  | { readonly path: string; readonly username: string; readonly password: string; readonly database: string };

/** What is wrong with an address; undefined: nothing that can be told from it alone. */
export function addressProblem(text: string): string | undefined {
  if (!parsePostgresAddress(text)) return ADDRESS_EXPECTED;
  const mode = settingsOf(text).get("sslmode");
  if (mode === null || SSL_MODES.includes(mode)) return undefined;
  return `sslmode: expected one of ${SSL_MODES.join(", ")}, got '${mode}'`;
}

/** The files that an address names, each with its setting. */
export function filesOf(text: string): [setting: string, path: string][] {
  const settings = settingsOf(text);
  return FILES.flatMap((name) => {
    const path = settings.get(name);
    return path === null || path === "" || path === "system" ? [] : [[name, path]];
  });
}

/** Where an address leads, without who goes there. */
export function placeOf(text: string): string {
  const address = parsePostgresAddress(text);
  if (!address) return "";
  if ("path" in address) return address.path;
  const { hostname, port } = new URL(address.url);
  return `${decoded(hostname)}:${port || "5432"}`;
}

const settingsOf = (text: string): URLSearchParams => new URLSearchParams(/\?([^#]*)/.exec(text)?.[1] ?? "");

/** Undefined for what is none. */
export function parsePostgresAddress(text: string): PostgresAddress | undefined {
  if (!/^postgres(ql)?:\/\//.test(text)) return undefined;
  // a name or a port without a host is no URL elsewhere; here the host can stand behind it
  const whole = text.replace(/^(\w+:\/\/(?:[^/?#]*@)?)(?=[:/?#]|$)/, "$1localhost");
  if (!URL.canParse(whole)) return undefined;
  const url = new URL(whole);
  const host = take(url, "host") ?? decoded(url.hostname);
  const port = take(url, "port") ?? url.port;
  const username = take(url, "user") ?? decoded(url.username);
  const password = take(url, "password") ?? decoded(url.password);
  const database = take(url, "dbname") ?? decoded(url.pathname.slice(1));
  if (host.startsWith("/")) return { path: `${host}/.s.PGSQL.${port || "5432"}`, username, password, database };
  if (host.includes(",") || !/^\d*$/.test(port)) return undefined;
  url.hostname = host;
  url.port = port;
  url.username = encodeURIComponent(username);
  url.password = encodeURIComponent(password);
  url.pathname = `/${encodeURIComponent(database)}`;
  // by itself: PGDATABASE would count for more than the address
  return { url: url.href, ...(database !== "" && { database }) };
}

/** A setting behind the question mark, which is taken out: the client would pass it on to the server. */
function take(url: URL, name: string): string | undefined {
  const value = url.searchParams.get(name);
  url.searchParams.delete(name);
  return value || undefined;
}

/** What is no percent-encoding stands for itself. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
