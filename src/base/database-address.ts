/** `database.url` as people write it: an address of a PostgreSQL server, in the forms that its own programs take. */

export const ADDRESS_EXPECTED = "expected postgres://user:password@host:port/database, of one host";

/** For Bun's client, which takes the path of a socket, not its folder. */
export type PostgresAddress =
  | { readonly url: string; readonly database?: string }
  | { readonly path: string; readonly username: string; readonly password: string; readonly database: string };

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
