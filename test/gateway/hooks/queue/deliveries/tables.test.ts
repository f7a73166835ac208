import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { openDatabase } from "../../../../../src/gateway/database/database.ts";
import { queryAll } from "../../../../../src/gateway/database/store.ts";
import { leasedRuns } from "../../../../../src/gateway/hooks/queue/deliveries/claims.ts";
import { findRun } from "../../../../../src/gateway/hooks/queue/deliveries/runs.ts";
import { deliveryMigrations } from "../../../../../src/gateway/hooks/queue/deliveries/tables.ts";
import { openStore, postgresUrl } from "../../../../stores.ts";
import { agent, wake } from "./fixtures.ts";

test.skipIf(postgresUrl !== undefined)(
  "a migration adds mappings and kinds to runs, and leaves one running turn per session",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "hearth-tables-"));
    const path = join(folder, "gateway.db");
    try {
      const before = deliveryMigrations.findIndex(({ name }) => name === "hooks: turns by lane and session");
      const old = openDatabase(path, deliveryMigrations.slice(0, before));
      old.run(
        `INSERT INTO deliveries (id, request_id, received_at, path, lane, mapping_id, auth_kind, auth_id, keys_until,
         body_sha256, body_bytes, headers, response) VALUES ('d', 'r', 1, 'ci', 'mapping ci', 'ci', 'token', 't', 1, 'x', 1,
         '{}', '{}')`,
      );
      const insert = old.query(
        `INSERT INTO runs (id, delivery_id, item, lane, session_key, action, state, step, next_at, created_at, lease_owner,
         lease_until) VALUES (?, 'd', ?, 'mapping ci', 'same', ?, ?, ?, 1, 1, ?, ?)`,
      );
      insert.run("first", 0, JSON.stringify(agent("x")), "running", "turn", "o", 9);
      insert.run("second", 1, JSON.stringify(agent("x")), "running", "turn", "o", 9); // possible only through a bug
      insert.run("wake", 2, JSON.stringify(wake("x")), "queued", "event", null, null);
      old.close();
      const store = openStore(deliveryMigrations, path);
      const kinds = await store.read(() => queryAll("SELECT id, kind, mapping_id FROM runs ORDER BY seq"));
      expect(kinds).toEqual([
        { id: "first", kind: "agent", mapping_id: "ci" },
        { id: "second", kind: "agent", mapping_id: "ci" },
        { id: "wake", kind: "wake", mapping_id: "ci" },
      ]);
      expect((await store.read(leasedRuns)).map(({ id }) => id)).toEqual(["first"]);
      expect(await store.read(() => findRun("second"))).toMatchObject({
        state: "queued",
        leaseOwner: null,
        suspected: 0,
      });
      await store.close();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
