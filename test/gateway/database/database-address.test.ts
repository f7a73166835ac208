/** Valid and invalid values of `database.url`. */
import { describe, expect, test } from "bun:test";
import { openPostgres } from "../../../src/gateway/database/postgres/postgres-store.ts";
import { addressProblem, parsePostgresAddress, placeOf } from "../../../src/gateway/database/database-address.ts";
import { queryOne } from "../../../src/gateway/database/store.ts";
import { startProxy } from "../../postgres-proxy.ts";
import { hasPostgres, startPostgres } from "../../postgres-server.ts";

test.each([
  ["postgres://u:p@h:5433/db", { url: "postgres://u:p@h:5433/db", database: "db" }],
  ["postgresql://u@[::1]/db?sslmode=require", { url: "postgresql://u@[::1]/db?sslmode=require", database: "db" }],
  ["postgres://u:p%25%40@h/a%2Fb", { url: "postgres://u:p%25%40@h/a%2Fb", database: "a/b" }],
  ["postgres://u@h", { url: "postgres://u@h/" }],
  ["postgres://h/db?user=u&password=p%40", { url: "postgres://u:p%40@h/db", database: "db" }],
  ["postgres://u@/db?host=h.example&port=1", { url: "postgres://u@h.example:1/db", database: "db" }],
])("%s is the address of a host", (text, expected) => {
  expect(parsePostgresAddress(text)).toEqual(expected);
});

test.each([
  ["postgres://u:p%40@localhost:77/db?host=/run/pg", ["/run/pg/.s.PGSQL.77", "u", "p@", "db"]],
  ["postgres://u:p@/db?host=/cloudsql/a:b:c", ["/cloudsql/a:b:c/.s.PGSQL.5432", "u", "p", "db"]],
  ["postgres:///db?host=/run/pg&port=77&user=u&password=p", ["/run/pg/.s.PGSQL.77", "u", "p", "db"]],
  ["postgres://u:p@%2Frun%2Fpg:77/db", ["/run/pg/.s.PGSQL.77", "u", "p", "db"]],
])("%s is the address of a socket", (text, [path, username, password, database]) => {
  expect(parsePostgresAddress(text)).toEqual({
    path: path!,
    username: username!,
    password: password!,
    database: database!,
  });
});

test.each(["", "mysql://h/db", "host=h dbname=db", "postgres:/h/db", "postgres://a,b/db", "postgres://a:1,b:2/db"])(
  "'%s' is not an address",
  (text) => {
    expect(parsePostgresAddress(text)).toBeUndefined();
  },
);

test.each([
  ["mysql://h/db", /^expected postgres:/],
  ["postgres://h/db?sslmode=on", /^sslmode: expected one of disable, .*, verify-full, got 'on'$/],
  ["postgres://h/db?sslmode=verify-full", undefined],
  ["postgres:///db?host=/run/pg", undefined],
])("the problem of %s is reported", (text, expected) => {
  const problem = addressProblem(text);
  if (expected) expect(problem).toMatch(expected);
  else expect(problem).toBeUndefined();
});

test.each([
  ["postgres://u:secret@h/db", "h:5432"],
  ["postgres://u:secret@[::1]:77/db", "[::1]:77"],
  ["postgres://u:secret@/db?host=/run/pg", "/run/pg/.s.PGSQL.5432"],
])("the place of %s is %s", (text, place) => {
  expect(placeOf(text)).toBe(place);
});

test("the error of an unreachable server names its place without the password, and one of a missing file names it", async () => {
  const open = (url: string) => openPostgres({ url, schema: "named", connections: 3, name: "test" }, []);
  await expect(open("postgres://u:secret@127.0.0.1:1/db")).rejects.toThrow(
    /^the database cannot be reached: [^:]* \(127\.0\.0\.1:1\)$/,
  );
  await expect(open("postgres://u@127.0.0.1:1/db?sslmode=verify-ca&sslrootcert=/nowhere/ca.pem")).rejects.toThrow(
    /^database\.url: sslrootcert: expected a file, but '\/nowhere\/ca\.pem' does not exist$/,
  );
});

describe.skipIf(!hasPostgres)("an address and the environment (Debian's postgresql)", () => {
  test("the database of the address overrides PGDATABASE", async () => {
    const server = await startPostgres({ syncs: false });
    const proxy = startProxy(server);
    const before = process.env["PGDATABASE"];
    process.env["PGDATABASE"] = "template1";
    try {
      const store = await openPostgres({ url: proxy.url, schema: "named", connections: 3, name: "test" }, []);
      const named = await store.read(() => queryOne("SELECT current_database() AS name"));
      expect(named).toEqual({ name: "postgres" });
      await store.close();
    } finally {
      if (before === undefined) delete process.env["PGDATABASE"];
      else process.env["PGDATABASE"] = before;
      proxy.stop();
      await server.remove();
    }
  }, 120_000);
});
