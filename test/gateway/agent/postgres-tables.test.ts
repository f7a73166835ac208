/** A migration of the agent's tables keeps existing rights. */
import { SQL } from "bun";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { agentMigrations } from "../../../src/gateway/agent/postgres-tables.ts";
import { openPostgres } from "../../../src/gateway/database/postgres/postgres-store.ts";
import { hasPostgres, startPostgres, type PostgresServer } from "../../postgres-server.ts";

const SCHEMA = "counted";

let server: PostgresServer | undefined;
beforeAll(async () => void (server = hasPostgres ? await startPostgres() : undefined), 120_000);
afterAll(() => server?.remove(), 60_000);

test.skipIf(!hasPostgres)(
  "a role that may read the count of waiting events still may after the migration (Debian's postgresql)",
  async () => {
    const migrate = async (count: number): Promise<void> => {
      const options = { url: server!.url, schema: SCHEMA, connections: 4, name: "test" };
      await (await openPostgres(options, agentMigrations.slice(0, count))).close();
    };
    await migrate(2);
    await server!.run("CREATE ROLE reader LOGIN; CREATE ROLE stranger LOGIN");
    await server!.run(`GRANT USAGE ON SCHEMA ${SCHEMA} TO reader, stranger`);
    await server!.run(`GRANT SELECT ON ${SCHEMA}.session_event_counts TO reader`);
    await migrate(3);
    const read = async (role: string): Promise<unknown> => {
      const sql = new SQL({ adapter: "postgres", path: server!.socket, username: role, database: "postgres" });
      const counts = sql.unsafe(`SELECT count(*)::int AS n FROM ${SCHEMA}.session_event_counts`);
      return counts
        .then(([row]) => row.n)
        .catch((error: Error) => error.message)
        .finally(() => sql.close());
    };
    expect(await read("reader")).toBe(0);
    expect(await read("stranger")).toContain("permission denied");
  },
  60_000,
);
