/** `database.url`: the address of a PostgreSQL server, in the forms that PostgreSQL's own programs accept. */

const ADDRESS_EXPECTED = "expected postgres://user:password@host:port/database, of one host";
/** Values of `sslmode` that the client accepts. */
const SSL_MODES: readonly string[] = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];
/** Settings that name files; the value `system` stands for the machine's certificates. */
const FILES = ["sslrootcert", "sslcert", "sslkey"];

/** For Bun's client, which takes the path of a socket, not its folder. */
export type PostgresAddress =
  | { readonly url: string; readonly database?: string }
  | { readonly path: string; readonly username: string; readonly password: string; readonly database: string };

/** The error in an address; undefined: none can be seen without connecting. */
export function addressProblem(text: string): string | undefined {
  if (!parsePostgresAddress(text)) return ADDRESS_EXPECTED;
  const mode = settingsOf(text).get("sslmode");
  if (mode === null || SSL_MODES.includes(mode)) return undefined;
  return `sslmode: expected one of ${SSL_MODES.join(", ")}, got '${mode}'`;
}

/** The files in an address, each with its setting. */
export function filesOf(text: string): [setting: string, path: string][] {
  const settings = settingsOf(text);
  return FILES.flatMap((name) => {
    const path = settings.get(name);
    return path === null || path === "" || path === "system" ? [] : [[name, path]];
  });
}

/** An address without credentials. */
export function placeOf(text: string): string {
  const address = parsePostgresAddress(text);
  if (!address) return "";
  if ("path" in address) return address.path;
  const { hostname, port } = new URL(address.url);
  return `${decoded(hostname)}:${port || "5432"}`;
}

const settingsOf = (text: string): URLSearchParams => new URLSearchParams(/\?([^#]*)/.exec(text)?.[1] ?? "");

/** Undefined if the text is not an address. */
export function parsePostgresAddress(text: string): PostgresAddress | undefined {
  if (!/^postgres(ql)?:\/\//.test(text)) return undefined;
  // URL demands a host before a name or a port; here the host may be a query parameter
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
  // added separately, because PGDATABASE would override the address
  return { url: url.href, ...(database !== "" && { database }) };
}

/** Removes a setting from the query and returns it: the client would pass it on to the server. */
function take(url: URL, name: string): string | undefined {
  const value = url.searchParams.get(name);
  url.searchParams.delete(name);
  return value || undefined;
}

/** Invalid percent-encoding is kept unchanged. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
