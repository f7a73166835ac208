/** Servers and poolers that the gateway cannot use: one clear line at startup. */
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { joinCluster } from "../../../src/gateway/database/postgres/cluster.ts";
import { clusterMigrations } from "../../../src/gateway/database/postgres/cluster-tables.ts";
import { openPostgres } from "../../../src/gateway/database/postgres/postgres-store.ts";
import { execute, queryOne } from "../../../src/gateway/database/store.ts";
import { eventually } from "../../e2e/hearth.ts";
import { startProxy } from "../../postgres-proxy.ts";
import { asOwner, hasPostgres, ownerOf, startPostgres, type PostgresServer } from "../../postgres-server.ts";

const WAIT_MS = 60_000;
const TABLE = { name: "words", sql: "CREATE TABLE words (word TEXT)" };
const PGBOUNCER = Bun.which("pgbouncer", { PATH: `${process.env["PATH"]}:/usr/sbin` });

describe.skipIf(!hasPostgres)("opening a store on an unsuitable server (Debian's postgresql)", () => {
  let server: PostgresServer;
  let schemas = 0;
  beforeAll(async () => void (server = await startPostgres()), 120_000);
  afterAll(() => server?.remove(), 60_000);

  const open = (url: string) =>
    openPostgres({ url, schema: `unfit_${++schemas}`, connections: 3, name: "test" }, [TABLE]);
  const refusal = (message: string) => ({ code: "storage", message: `the database does not fit: expected ${message}` });

  test("refuses a version before 14", async () => {
    const version = server.version;
    const aged = (data: Buffer): Uint8Array => {
      const text = data.toString("latin1");
      const number = Buffer.alloc(4);
      number.writeInt32BE(version);
      const old = Buffer.alloc(4);
      old.writeInt32BE(130_014);
      return Buffer.from(
        text.replaceAll(`${version}`, "130014").replaceAll(number.toString("latin1"), old.toString("latin1")),
        "latin1",
      );
    };
    const proxy = startProxy(server, aged);
    await expect(open(proxy.url)).rejects.toMatchObject({
      code: "storage",
      message: expect.stringMatching(/^the database does not fit: expected PostgreSQL 14 or later, got \d+\.\d/),
    });
    proxy.stop();
  });

  test("refuses an encoding other than UTF8", async () => {
    await server.run("CREATE DATABASE narrow ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    const narrow = server.url.replace("/postgres?", "/narrow?");
    await expect(open(narrow)).rejects.toMatchObject(refusal("a database of encoding UTF8, got LATIN1"));
  }, 60_000);

  test("fails within seconds if the server is silent", async () => {
    const proxy = startProxy(server);
    proxy.isSilent = true;
    await expect(open(proxy.url)).rejects.toMatchObject({
      code: "storage",
      message: expect.stringMatching(/^the database cannot be reached: Connection timeout after 5s/),
    });
    proxy.stop();
  }, 60_000);

  test("fails with one line if the server is silent once the tables exist", async () => {
    const options = { url: server.url, schema: `unfit_${++schemas}`, connections: 3, name: "test" };
    const store = await openPostgres(options, clusterMigrations);
    const proxy = startProxy(server);
    proxy.isSilent = true;
    const none = (): void => {};
    const log = { debug: none, info: none, warn: none, error: none };
    const facts = () => ({ name: "test", version: "1", digest: "d" });
    await expect(joinCluster(store, { ...options, url: proxy.url, facts, log })).rejects.toMatchObject({
      code: "storage",
      message: expect.stringMatching(/^the database cannot be reached: Connection timeout after 5s/),
    });
    proxy.stop();
    await store.close();
  }, 60_000);

  describe.skipIf(PGBOUNCER === null)("behind a pooler (Debian's pgbouncer)", () => {
    const running: (() => Promise<void>)[] = [];
    afterEach(async () => {
      for (const stop of running.splice(0)) await stop(); // after a failed test, too
    });

    /** @param ignored connection parameters that it does not pass on */
    async function startPooler(mode: "session" | "transaction", ignored: string) {
      const folder = mkdtempSync(join(tmpdir(), "hearth-pgbouncer-"));
      const settings = `[databases]
* = host=${dirname(server.socket)} port=5432
[pgbouncer]
listen_addr =
unix_socket_dir = ${folder}
listen_port = 5432
auth_type = any
pool_mode = ${mode}
ignore_startup_parameters = ${ignored}
`;
      const file = join(folder, "pgbouncer.ini");
      writeFileSync(file, settings.replace("* = host", "postgres = user=hearth host"));
      const { uid, gid } = ownerOf();
      for (const path of [folder, file]) if (process.getuid?.() === 0) chownSync(path, uid, gid);
      const child = Bun.spawn(asOwner([PGBOUNCER!, file]), { stdout: "ignore", stderr: "ignore" });
      running.push(async () => {
        child.kill("SIGKILL");
        await child.exited;
        rmSync(folder, { recursive: true, force: true });
      });
      const unix = join(folder, ".s.PGSQL.5432");
      const connects = async (): Promise<boolean> => {
        const socket = await Bun.connect({ unix, socket: { data() {} } }).catch(() => undefined);
        socket?.end();
        return socket !== undefined;
      };
      expect(await eventually(connects, WAIT_MS)).toBe(true); // its file exists before it listens
      return { url: `postgres://hearth@localhost/postgres?host=${folder}` };
    }

    const ALL =
      "statement_timeout, lock_timeout, idle_in_transaction_session_timeout, plan_cache_mode, search_path, " +
      "tcp_keepalives_idle, tcp_keepalives_interval, tcp_keepalives_count, tcp_user_timeout";

    test("fails if the pooler refuses the connection's parameters", async () => {
      const pooler = await startPooler("session", "extra_float_digits");
      await expect(open(pooler.url)).rejects.toMatchObject({
        code: "storage",
        message: expect.stringMatching(/^the database [^:]*: .*unsupported startup parameter/),
      });
    }, 60_000);

    test("refuses a pooler in transaction mode", async () => {
      const pooler = await startPooler("transaction", ALL);
      const message = "a session for each connection, got a pooler in transaction mode: use session mode";
      await expect(open(pooler.url)).rejects.toMatchObject(refusal(message));
    }, 60_000);

    test("refuses a pooler that ignores the connection's parameters, unless the role has them", async () => {
      const pooler = await startPooler("session", ALL);
      await expect(open(pooler.url)).rejects.toMatchObject({
        code: "storage",
        message: expect.stringMatching(
          /^the database does not fit: expected search_path to be "unfit_\d+", got "\$user", public/,
        ),
      });
      const schema = `unfit_${schemas + 1}`;
      await server.run(`ALTER ROLE hearth SET search_path = ${schema}`);
      await server.run("ALTER ROLE hearth SET lock_timeout = '5s'");
      try {
        const other = await startPooler("session", ALL);
        const store = await open(other.url);
        await store.write(() => execute("INSERT INTO words VALUES ('kept')"));
        expect(await store.read(() => queryOne(`SELECT word FROM ${schema}.words`))).toEqual({ word: "kept" });
        await store.close();
      } finally {
        await server.run("ALTER ROLE hearth RESET ALL");
      }
    }, 60_000);
  });
});
