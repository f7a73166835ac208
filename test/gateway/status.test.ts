/** Whether the gateway's database can be written, as probes ask again and again. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { openDatabase } from "../../src/base/database.ts";
import { execute, queryOne } from "../../src/base/store.ts";
import { checkWritable } from "../../src/gateway/status.ts";
import { deliveryMigrations } from "../../src/hooks/deliveries/tables.ts";
import { openStore } from "../stores.ts";

test("a probe writes nothing; after a commit that failed it tells so until one succeeds", async () => {
  const home = mkdtempSync(join(tmpdir(), "hearth-status-"));
  const path = join(home, "gateway.db");
  const store = openStore(deliveryMigrations, path);
  try {
    const change = () => store.write(() => execute("DELETE FROM runs"));
    await store.write(() => execute("INSERT INTO items VALUES ('a', 'b', 'c', 1)"));
    const size = statSync(`${path}-wal`).size;
    for (let probe = 0; probe < 50; probe++) await checkWritable(store, { folder: home });
    expect(statSync(`${path}-wal`).size).toBe(size);

    const other = openDatabase(path, []);
    await store.read(() => queryOne("PRAGMA busy_timeout = 1"));
    other.run("BEGIN IMMEDIATE"); // nobody else can commit
    await expect(change()).rejects.toMatchObject({ code: "storage" });
    await expect(checkWritable(store, { folder: home })).rejects.toMatchObject({ code: "storage" });
    other.run("ROLLBACK");
    other.close();
    await checkWritable(store, { folder: home });
  } finally {
    await store.close();
    rmSync(home, { recursive: true, force: true });
  }
});
