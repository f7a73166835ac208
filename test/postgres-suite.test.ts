/** The gateway's own tests, those that store most, on PostgreSQL: what holds in one database holds in the other. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { hasPostgres, startPostgres } from "./postgres-server.ts";

const FILES = [
  "test/hooks/deliveries/accept.test.ts",
  "test/hooks/deliveries/claims.test.ts",
  "test/hooks/deliveries/deliveries.test.ts",
  "test/hooks/deliveries/items.test.ts",
  "test/hooks/worker/agent-ports.test.ts",
  "test/hooks/worker/callbacks.test.ts",
  "test/hooks/worker/crashes.test.ts",
  "test/hooks/worker/lifecycle.test.ts",
  "test/hooks/worker/order.test.ts",
  "test/hooks/worker/worker.test.ts",
  "test/agent/events.test.ts",
  "test/agent/sessions.test.ts",
  "test/agent/turn.test.ts",
  "test/channels/outbox/outbox.test.ts",
];

test.skipIf(!hasPostgres)(
  "on PostgreSQL (Debian's postgresql)",
  async () => {
    const server = await startPostgres();
    try {
      const child = Bun.spawn([process.execPath, "test", "--timeout", "60000", ...FILES], {
        cwd: join(import.meta.dir, ".."),
        env: { ...process.env, HEARTH_TEST_POSTGRES: server.url },
        stdout: "ignore",
        stderr: "pipe",
      });
      const said = await new Response(child.stderr).text();
      expect(said.split("\n").filter((line) => /^\(fail\)|error:/.test(line))).toEqual([]);
      expect(Number(/^ *(\d+) pass$/m.exec(said)?.[1])).toBeGreaterThan(100);
      expect(await child.exited).toBe(0);
    } finally {
      await server.remove();
    }
  },
  300_000,
);
