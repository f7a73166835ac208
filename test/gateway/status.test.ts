/** Whether the gateway's database can be written, as probes ask again and again. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { openDatabase, Writer } from "../../src/base/database.ts";
import { checkWritable } from "../../src/gateway/status.ts";
import { deliveryMigrations } from "../../src/hooks/deliveries/tables.ts";

test("a probe writes nothing; after a commit that failed it tells so until one succeeds", async () => {
  const home = mkdtempSync(join(tmpdir(), "hearth-status-"));
  const path = join(home, "gateway.db");
  const db = openDatabase(path, deliveryMigrations);
  try {
    const writer = new Writer(db);
    await writer.write((at) => at.run("PRAGMA wal_checkpoint(TRUNCATE)")).catch(() => {});
    const size = statSync(`${path}-wal`).size;
    for (let probe = 0; probe < 50; probe++) await checkWritable(writer, home);
    expect(statSync(`${path}-wal`).size).toBe(size);

    const other = openDatabase(path, []);
    db.run("PRAGMA busy_timeout = 1");
    other.run("BEGIN IMMEDIATE"); // nobody else can commit
    await expect(writer.write(() => undefined)).rejects.toMatchObject({ code: "storage" });
    await expect(checkWritable(writer, home)).rejects.toMatchObject({ code: "storage" });
    other.run("ROLLBACK");
    other.close();
    await checkWritable(writer, home);
  } finally {
    db.close();
    rmSync(home, { recursive: true, force: true });
  }
});
